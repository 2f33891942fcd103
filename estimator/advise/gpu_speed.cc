#include "estimator/advise/gpu_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/gpus.h"
#include "estimator/job/target_capability.h"

namespace memfathom {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

// The share of the data sheet's FLOP/s that training attains: Llama 3 reports 38 to 43 % (The Llama
// 3 Herd of Models, 2024, section 3.3). That links and memories attain 75 % is an assumption.
constexpr double kComputeShare = 0.4;
constexpr double kLinkShare = 0.75;
// An assumption: eight channels of DDR4-3200 (25.6 GB/s each, JEDEC JESD79-4), of which an
// optimizer's mixed reading and writing attains half.
constexpr double kHostMemory = 8 * 25.6 * kGiga * 0.5;
// An assumption: one 200 Gbit/s adapter for each GPU, as in NVIDIA's DGX A100.
constexpr double kBetweenNodes = 25;

// Data sheets of the vendors: dense 16-bit matrix products with fp32 accumulation, fp32 outside of
// tensor cores, memory, and one direction of NVLink or Infinity Fabric and of PCIe with 16 lanes.
// Where there are several forms it is the SXM module (h100-94gb is the NVL card, h100-96gb the
// GH200, whose host link is NVLink-C2C). 0: none, or only a bridge between two cards that is sold
// apart (A40, RTX A6000, RTX 3090, MI210).
//
// The sheets themselves were not at hand. Compared with the tables of torchtitan, verl, NeMo-RL and
// Lightning, which name them: the 16-bit figures of A100, A800, H100, H800, H20, H200, B200, B300,
// V100, T4, A10, L40, L40S, A40, RTX A6000 and MI300X (1300 and 1336 there). With published
// comparisons: those of RTX 4090 and 5090, and the memory of H100, H200, H20, B200, A10, A10G, A40,
// MI300X, RTX 4090 and 5090. With tables and articles that quote the sheets: L4 (121, 30.3, 300),
// P100 (21.2, 10.6, 732, 80 of NVLink), MI210 (181, 22.6, 1600), RTX 6000 Ada (91.1, 960), A10's,
// A30's and RTX 4080's fp32, fp32 and memory of RTX 3090 and 3080 (whose 16-bit products are half
// of the 142 and 119 with 16-bit accumulation). Still from memory: the A30's 165 and 933, the
// A10G's 70 (one table has 62.5), the RTX 4080's 97.5 and 717, the RTX 6000 Ada's 364, most links.
// H20 and H800 have no public sheet.
struct DataSheet {
  std::string_view gpu;
  double tera_16_bit, tera_32_bit, memory, nvlink, pcie;
};

constexpr auto kSheets = std::to_array<DataSheet>({
    {"a100-80gb", 312, 19.5, 2039, 300, 32},
    {"a100-40gb", 312, 19.5, 1555, 300, 32},
    {"a800-80gb", 312, 19.5, 2039, 200, 32},
    {"h100-80gb", 989, 67, 3350, 450, 64},
    {"h100-94gb", 835, 60, 3900, 300, 64},
    {"h100-96gb", 989, 67, 4000, 450, 450},
    {"h800-80gb", 989, 67, 3350, 200, 64},
    {"h20", 148, 44, 4000, 450, 64},
    {"h200", 989, 67, 4800, 450, 64},
    {"b200", 2250, 80, 8000, 900, 64},
    {"b300", 2250, 80, 8000, 900, 64},
    {"v100-16gb", 125, 15.7, 900, 150, 16},
    {"v100-32gb", 125, 15.7, 900, 150, 16},
    {"p100-16gb", 21.2, 10.6, 732, 80, 16},
    {"t4", 65, 8.1, 320, 0, 16},
    {"a10", 125, 31.2, 600, 0, 32},
    {"a10g", 70, 35, 600, 0, 32},
    {"a30", 165, 10.3, 933, 100, 32},
    {"a40", 149.7, 37.4, 696, 0, 32},
    {"l4", 121, 30.3, 300, 0, 32},
    {"l40", 181, 90.5, 864, 0, 32},
    {"l40s", 362, 91.6, 864, 0, 32},
    {"rtx-a6000", 154.8, 38.7, 768, 0, 32},
    {"rtx-6000-ada", 364, 91.1, 960, 0, 32},
    {"rtx-3090", 71, 35.6, 936, 0, 32},
    {"rtx-3080-10gb", 59.5, 29.8, 760, 0, 32},
    {"rtx-4080", 97.5, 48.7, 717, 0, 32},
    {"rtx-4090", 165.2, 82.6, 1008, 0, 32},
    {"rtx-5090", 209.5, 104.8, 1792, 0, 64},
    {"mi210", 181, 22.6, 1638, 0, 32},
    {"mi300x", 1307, 163, 5300, 448, 64},
});

const DataSheet* sheet_of(const Job& job) {
  const Gpu* gpu = job.target.gpu.empty() ? nullptr : find_gpu(job.target.gpu);
  if (gpu == nullptr) return nullptr;
  const auto found = std::find_if(kSheets.begin(), kSheets.end(),
                                  [&](const DataSheet& sheet) { return sheet.gpu == gpu->name; });
  return found == kSheets.end() ? nullptr : &*found;
}

// Volta brought them. Pascal's cards for games do 16-bit arithmetic at a 64th of fp32's rate, which
// libraries avoid.
bool has_tensor_cores(const Job& job) {
  constexpr int kVolta = 70;
  const int capability = named_capability(job.target);
  return capability == 0 || capability >= kVolta;
}

}  // namespace

GpuSpeed gpu_speed(const Job& job) {
  const DataSheet* found = sheet_of(job);
  const DataSheet& sheet = found != nullptr ? *found : kSheets.front();
  const bool one_node = job.parallel.num_gpus <= job.parallel.gpus_per_node;
  const double link = sheet.nvlink > 0 ? sheet.nvlink : sheet.pcie;
  GpuSpeed speed;
  speed.name = sheet.gpu;
  speed.is_stand_in = found == nullptr;
  speed.flops_16_bit = kComputeShare * sheet.tera_16_bit * kTera;
  speed.has_tensor_cores = has_tensor_cores(job);
  // Without tensor cores the share that programs attain is higher, as for the links.
  speed.flops_32_bit = kLinkShare * sheet.tera_32_bit * kTera;
  if (found == nullptr && !speed.has_tensor_cores) speed.flops_16_bit = speed.flops_32_bit;
  speed.memory = kLinkShare * sheet.memory * kGiga;
  speed.gpu_link = kLinkShare * (one_node ? link : std::min(link, kBetweenNodes)) * kGiga;
  speed.host_link = kLinkShare * sheet.pcie * kGiga;
  speed.host_memory = kHostMemory;
  return speed;
}

std::string GpuSpeed::sentence() const {
  if (is_stand_in && !has_tensor_cores) {
    return fmt::format(
        "computed, not measured: the target has no data sheet and no tensor cores, so 16-bit and "
        "fp32 products at {:.0f} TFLOP/s and the other rates of {} were taken; only ratios between "
        "changes mean something",
        flops_16_bit / kTera, name);
  }
  return fmt::format(
      "computed, not measured, from 16-bit products at {:.0f} TFLOP/s ({:.0f} % of the data sheet "
      "of {}{}), {:.0f} GB/s of GPU memory, {:.0f} GB/s to other GPUs, {:.0f} GB/s to the host, "
      "{:.0f} GB/s of host memory",
      flops_16_bit / kTera, 100 * kComputeShare, name,
      is_stand_in ? ", used because the target has no data sheet" : "", memory / kGiga,
      gpu_link / kGiga, host_link / kGiga, host_memory / kGiga);
}

}  // namespace memfathom
