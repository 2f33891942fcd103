#include "estimator/session/current_stack.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "core/gpus.h"
#include "core/interval.h"
#include "core/library_constants.h"
#include "core/outside_allocator.h"
#include "core/quantile.h"

namespace memfathom {
namespace {

constexpr double kNormalQuantile90 = 1.6449;
constexpr double kSimilarMemory = 0.25;  // GPUs within this share of a size are alternatives to it

const Gpu* gpu_of(const Job& job, const LiveGpu* live) {
  if (!job.target.gpu.empty()) return &gpu_named(job.target.gpu, "target.gpu");
  return live != nullptr ? find_gpu(live->gpu) : nullptr;
}

bool is_alternative(const Gpu& gpu, const std::optional<Bytes>& memory, int capability) {
  if (gpu.multiprocessors == 0) return false;
  if (capability > 0 && gpu.compute_capability() != capability) return false;
  if (!memory) return true;
  const auto wanted = static_cast<double>(memory->count());
  return std::abs(static_cast<double>(gpu.memory().count()) - wanted) <= kSimilarMemory * wanted;
}

// The resident threads / 1024 of the GPUs that a job without a named one may mean, in order.
std::vector<double> possible_kilothreads(const Job& job, const LiveGpu* live) {
  const int capability = live != nullptr ? live->compute_capability : job.target.compute_capability;
  const std::optional<Bytes> memory = live != nullptr ? live->total : job.target.memory;
  std::vector<double> threads;
  const auto collect = [&](const std::optional<Bytes>& size, int of_capability) {
    for (const Gpu& gpu : gpus_by_memory()) {
      if (is_alternative(gpu, size, of_capability)) threads.push_back(gpu.resident_kilothreads());
    }
  };
  collect(memory, capability);
  if (threads.empty()) collect(std::nullopt, capability);
  if (threads.empty()) collect(std::nullopt, 0);
  std::sort(threads.begin(), threads.end());
  return threads;
}

bool has_nvlink(const Gpu& gpu) {
  switch (gpu.compute_capability()) {
    case 70:
    case 80:
    case 90:
    case 100:
    case 103: return true;
    default: return false;
  }
}

void add(Calibration& calibration, std::string_view name, double value, double error, int samples) {
  calibration.coefficients.push_back(
      {std::string(name), value, error, "bytes", Source::kPublished, false, samples});
}

}  // namespace

Calibration current_stack_calibration(const Calibration& published, const Job& job,
                                      const LiveGpu* live) {
  const StackSpec& stack = job.target.stack;
  OutsideTarget target;
  target.loading = module_loading(stack.version, stack.cuda);
  target.release = release_series(stack.version);
  const Gpu* gpu = gpu_of(job, live);
  double error = 0;
  if (gpu != nullptr && gpu->multiprocessors > 0) {
    target.architecture = std::string(gpu->architecture);
    target.multiprocessors = gpu->multiprocessors;
    target.kilothreads = gpu->resident_kilothreads();
  } else {
    const std::vector<double> threads = possible_kilothreads(job, live);
    target.kilothreads = median(threads);
    OutsideTarget smallest = target;
    smallest.kilothreads = threads.front();
    OutsideTarget largest = target;
    largest.kilothreads = threads.back();
    error = (bytes_outside(published, largest) - bytes_outside(published, smallest)) / 2 /
            kNormalQuantile90;
  }
  const bool is_eager = target.loading == ModuleLoading::kEager;
  Calibration calibration;
  calibration.id = published.id;
  calibration.name = published.name;
  calibration.environment = published.environment;
  calibration.environment.framework_version = stack.version;
  calibration.created = published.created;
  calibration.source = Source::kPublished;
  calibration.provenance = published.provenance;
  calibration.usable = true;
  calibration.samples = published.samples;
  calibration.quality = published.quality;
  const int samples = published.samples;
  // The first kernels of cuBLAS and cuDNN add 5 to 10 MiB on a lazy stack, which the figures after
  // any computation contain.
  for (const LibraryConstant& constant : kLibraryConstants)
    add(calibration, constant.name, 0, 0, samples);
  calibration.coefficients[kContext].value = std::max(0.0, bytes_outside(published, target));
  calibration.coefficients[kContext].standard_error = error;
  if (is_eager)
    calibration.coefficients[constant_index("module.cudnn")].value =
        published.value_of(outside::kEagerCudnn, 0);
  add(calibration, kKneeName, published.value_of(kKneeName, 0), 0, samples);
  if (gpu != nullptr && gpu->multiprocessors > 0 && !has_nvlink(*gpu))
    add(calibration, kNcclWithoutNvlink, nccl_bytes(published, target), 0, samples);
  const std::string_view group = is_eager ? kEagerResiduals : kLazyResiduals;
  for (const RatioGroup& residuals : published.ratios) {
    if (residuals.group == group)
      calibration.ratios.push_back({std::string(kOutsideGroup), residuals.ratios});
  }
  return calibration;
}

}  // namespace memfathom
