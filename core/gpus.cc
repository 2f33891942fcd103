#include "core/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "core/architecture.h"
#include "core/error.h"
#include "core/suggest.h"

namespace memfathom {
namespace {

constexpr std::string_view kDataCentre = "data centre";
constexpr std::string_view kWorkstation = "workstation";
constexpr std::string_view kConsumer = "consumer";
constexpr std::string_view kLaptop = "laptop";

// Memory as nvidia-smi shows it, if known (true), else the data sheet's size (false); then the
// multiprocessors of the data sheet, 0 where they do not matter (AMD).
constexpr auto kGpus = std::to_array<Gpu>({
    {"gtx-1650-4gb", "NVIDIA GeForce GTX 1650", "nvidia", "sm_75", kConsumer, 4096, false, 14},
    {"rtx-3050-4gb-laptop", "NVIDIA GeForce RTX 3050 Laptop", "nvidia", "sm_86", kLaptop, 4096,
     true, 16},
    {"gtx-1660-6gb", "NVIDIA GeForce GTX 1660", "nvidia", "sm_75", kConsumer, 6144, false, 22},
    {"rtx-2060-6gb", "NVIDIA GeForce RTX 2060", "nvidia", "sm_75", kConsumer, 6144, false, 30},
    {"rtx-3060-6gb-laptop", "NVIDIA GeForce RTX 3060 Laptop", "nvidia", "sm_86", kLaptop, 6144,
     true, 30},
    {"rtx-4050-6gb-laptop", "NVIDIA GeForce RTX 4050 Laptop", "nvidia", "sm_89", kLaptop, 6141,
     true, 20},
    {"rtx-2070", "NVIDIA GeForce RTX 2070", "nvidia", "sm_75", kConsumer, 8192, false, 36},
    {"rtx-2080", "NVIDIA GeForce RTX 2080", "nvidia", "sm_75", kConsumer, 8192, false, 46},
    {"rtx-3050-8gb", "NVIDIA GeForce RTX 3050", "nvidia", "sm_86", kConsumer, 8192, true, 20},
    {"rtx-3060-ti", "NVIDIA GeForce RTX 3060 Ti", "nvidia", "sm_86", kConsumer, 8192, true, 38},
    {"rtx-3070", "NVIDIA GeForce RTX 3070", "nvidia", "sm_86", kConsumer, 8192, true, 46},
    {"rtx-3070-8gb-laptop", "NVIDIA GeForce RTX 3070 Laptop", "nvidia", "sm_86", kLaptop, 8192,
     true, 40},
    {"rtx-4060", "NVIDIA GeForce RTX 4060", "nvidia", "sm_89", kConsumer, 8188, true, 24},
    {"rtx-4060-8gb-laptop", "NVIDIA GeForce RTX 4060 Laptop", "nvidia", "sm_89", kLaptop, 8188,
     true, 24},
    {"rtx-4070-8gb-laptop", "NVIDIA GeForce RTX 4070 Laptop", "nvidia", "sm_89", kLaptop, 8188,
     true, 36},
    {"rtx-5060", "NVIDIA GeForce RTX 5060", "nvidia", "sm_120", kConsumer, 8151, true, 30},
    {"p4", "NVIDIA Tesla P4", "nvidia", "sm_61", kDataCentre, 7680, false, 20},
    {"rtx-3080-10gb", "NVIDIA GeForce RTX 3080", "nvidia", "sm_86", kConsumer, 10240, true, 68},
    {"gtx-1080-ti", "NVIDIA GeForce GTX 1080 Ti", "nvidia", "sm_61", kConsumer, 11264, false, 28},
    {"rtx-2080-ti", "NVIDIA GeForce RTX 2080 Ti", "nvidia", "sm_75", kConsumer, 11264, true, 68},
    {"rtx-3060-12gb", "NVIDIA GeForce RTX 3060", "nvidia", "sm_86", kConsumer, 12288, true, 28},
    {"rtx-3080-12gb", "NVIDIA GeForce RTX 3080 12GB", "nvidia", "sm_86", kConsumer, 12288, true,
     70},
    {"rtx-3080-ti", "NVIDIA GeForce RTX 3080 Ti", "nvidia", "sm_86", kConsumer, 12288, true, 80},
    {"rtx-4070", "NVIDIA GeForce RTX 4070", "nvidia", "sm_89", kConsumer, 12282, true, 46},
    {"rtx-4070-ti", "NVIDIA GeForce RTX 4070 Ti", "nvidia", "sm_89", kConsumer, 12282, true, 60},
    {"rtx-4080-12gb-laptop", "NVIDIA GeForce RTX 4080 Laptop", "nvidia", "sm_89", kLaptop, 12282,
     true, 58},
    {"rtx-5070", "NVIDIA GeForce RTX 5070", "nvidia", "sm_120", kConsumer, 12227, true, 48},
    {"rtx-a2000-12gb", "NVIDIA RTX A2000 12GB", "nvidia", "sm_86", kWorkstation, 12288, false, 26},
    {"t4", "NVIDIA T4", "nvidia", "sm_75", kDataCentre, 15360, true, 40},
    {"p100-16gb", "NVIDIA Tesla P100", "nvidia", "sm_60", kDataCentre, 16384, false, 56},
    {"v100-16gb", "NVIDIA V100 16GB", "nvidia", "sm_70", kDataCentre, 16384, true, 80},
    {"a2", "NVIDIA A2", "nvidia", "sm_86", kDataCentre, 15356, true, 10},
    {"rtx-a4000", "NVIDIA RTX A4000", "nvidia", "sm_86", kWorkstation, 16376, true, 48},
    {"rtx-4060-ti-16gb", "NVIDIA GeForce RTX 4060 Ti 16GB", "nvidia", "sm_89", kConsumer, 16380,
     true, 34},
    {"rtx-4070-ti-super", "NVIDIA GeForce RTX 4070 Ti SUPER", "nvidia", "sm_89", kConsumer, 16376,
     true, 66},
    {"rtx-4080", "NVIDIA GeForce RTX 4080", "nvidia", "sm_89", kConsumer, 16376, true, 76},
    {"rtx-4090-16gb-laptop", "NVIDIA GeForce RTX 4090 Laptop", "nvidia", "sm_89", kLaptop, 16376,
     true, 76},
    {"rtx-5060-ti-16gb", "NVIDIA GeForce RTX 5060 Ti 16GB", "nvidia", "sm_120", kConsumer, 16311,
     true, 36},
    {"rtx-5070-ti", "NVIDIA GeForce RTX 5070 Ti", "nvidia", "sm_120", kConsumer, 16303, true, 70},
    {"rtx-5080", "NVIDIA GeForce RTX 5080", "nvidia", "sm_120", kConsumer, 16303, true, 84},
    {"rtx-4000-ada", "NVIDIA RTX 4000 Ada", "nvidia", "sm_89", kWorkstation, 20475, true, 48},
    {"a10", "NVIDIA A10", "nvidia", "sm_86", kDataCentre, 23028, true, 72},
    {"a10g", "NVIDIA A10G", "nvidia", "sm_86", kDataCentre, 23028, true, 80},
    {"l4", "NVIDIA L4", "nvidia", "sm_89", kDataCentre, 23034, true, 58},
    {"a30", "NVIDIA A30", "nvidia", "sm_80", kDataCentre, 24576, true, 56},
    {"titan-rtx", "NVIDIA TITAN RTX", "nvidia", "sm_75", kWorkstation, 24576, true, 72},
    {"rtx-3090", "NVIDIA GeForce RTX 3090", "nvidia", "sm_86", kConsumer, 24576, true, 82},
    {"rtx-3090-ti", "NVIDIA GeForce RTX 3090 Ti", "nvidia", "sm_86", kConsumer, 24564, true, 84},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", "nvidia", "sm_89", kConsumer, 24564, true, 128},
    {"rtx-a5000", "NVIDIA RTX A5000", "nvidia", "sm_86", kWorkstation, 24564, true, 64},
    {"rtx-5090-24gb-laptop", "NVIDIA GeForce RTX 5090 Laptop", "nvidia", "sm_120", kLaptop, 24463,
     true, 82},
    {"p40", "NVIDIA Tesla P40", "nvidia", "sm_61", kDataCentre, 24576, false, 30},
    {"v100-32gb", "NVIDIA V100 32GB", "nvidia", "sm_70", kDataCentre, 32768, true, 80},
    {"rtx-5000-ada", "NVIDIA RTX 5000 Ada", "nvidia", "sm_89", kWorkstation, 32760, true, 100},
    {"rtx-5090", "NVIDIA GeForce RTX 5090", "nvidia", "sm_120", kConsumer, 32607, true, 170},
    {"a100-40gb", "NVIDIA A100 40GB", "nvidia", "sm_80", kDataCentre, 40960, true, 108},
    {"l40", "NVIDIA L40", "nvidia", "sm_89", kDataCentre, 46068, true, 142},
    {"l40s", "NVIDIA L40S", "nvidia", "sm_89", kDataCentre, 46068, true, 142},
    {"a40", "NVIDIA A40", "nvidia", "sm_86", kDataCentre, 46068, true, 84},
    {"rtx-a6000", "NVIDIA RTX A6000", "nvidia", "sm_86", kWorkstation, 49140, true, 84},
    {"rtx-6000-ada", "NVIDIA RTX 6000 Ada", "nvidia", "sm_89", kWorkstation, 49140, true, 142},
    {"rtx-8000", "NVIDIA Quadro RTX 8000", "nvidia", "sm_75", kWorkstation, 49152, false, 72},
    {"a100-80gb", "NVIDIA A100 80GB", "nvidia", "sm_80", kDataCentre, 81920, true, 108},
    {"a800-80gb", "NVIDIA A800 80GB", "nvidia", "sm_80", kDataCentre, 81920, false, 108},
    {"h100-80gb", "NVIDIA H100 80GB", "nvidia", "sm_90", kDataCentre, 81559, true, 132},
    {"h800-80gb", "NVIDIA H800 80GB", "nvidia", "sm_90", kDataCentre, 81559, false, 132},
    {"rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell", "nvidia", "sm_120", kWorkstation, 97887, true,
     188},
    {"h100-94gb", "NVIDIA H100 NVL", "nvidia", "sm_90", kDataCentre, 95830, true, 132},
    {"h100-96gb", "NVIDIA GH200 96GB", "nvidia", "sm_90", kDataCentre, 97871, true, 132},
    {"h20", "NVIDIA H20", "nvidia", "sm_90", kDataCentre, 97871, true, 78},
    {"h200", "NVIDIA H200", "nvidia", "sm_90", kDataCentre, 143771, true, 132},
    {"b200", "NVIDIA B200", "nvidia", "sm_100", kDataCentre, 183359, true, 148},
    {"b300", "NVIDIA B300", "nvidia", "sm_103", kDataCentre, 294912, false, 160},
    {"rx-7900-xtx", "AMD Radeon RX 7900 XTX", "amd", "gfx1100", kConsumer, 24560, false, 0},
    {"rx-7900-xt", "AMD Radeon RX 7900 XT", "amd", "gfx1100", kConsumer, 20464, false, 0},
    {"w7900", "AMD Radeon PRO W7900", "amd", "gfx1100", kWorkstation, 49136, false, 0},
    {"mi100", "AMD Instinct MI100", "amd", "gfx908", kDataCentre, 32768, false, 0},
    {"mi210", "AMD Instinct MI210", "amd", "gfx90a", kDataCentre, 65536, false, 0},
    {"mi250x", "AMD Instinct MI250X (one die)", "amd", "gfx90a", kDataCentre, 65536, false, 0},
    {"mi300x", "AMD Instinct MI300X", "amd", "gfx942", kDataCentre, 196608, false, 0},
    {"mi325x", "AMD Instinct MI325X", "amd", "gfx942", kDataCentre, 262144, false, 0},
});

std::string folded(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != '-' && c != '_' && c != ' ')
      text.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return text;
}

// "NVIDIA A100-SXM4-40GB" -> a100, 40gb: the words that distinguish GPUs.
std::vector<std::string> words_in_order(std::string_view product) {
  static constexpr auto kIdle = std::to_array<std::string_view>(
      {"nvidia", "geforce", "tesla", "quadro", "gpu", "generation", "pcie", "sxm", "sxm2", "sxm3",
       "sxm4", "sxm5", "hbm2", "hbm2e", "hbm3", "hbm3e"});
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && std::find(kIdle.begin(), kIdle.end(), word) == kIdle.end())
      words.push_back(word);
    word.clear();
  };
  for (const char c : product) {
    if (c == ' ' || c == '-' || c == '_') {
      end_word();
    } else {
      word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
  }
  end_word();
  return words;
}

std::vector<std::string> identifying_words(std::string_view product) {
  std::vector<std::string> words = words_in_order(product);
  std::sort(words.begin(), words.end());
  return words;
}

bool is_memory_size(std::string_view word) { return word.ends_with("gb"); }

// Some driver names and some table names omit the size, so the memory itself decides.
std::vector<std::string> without_sizes(std::vector<std::string> words) {
  std::erase_if(words, [](const std::string& word) { return is_memory_size(word); });
  return words;
}

// Suggestions for a name: "a100" is part of two names; else the nearest name.
std::string names_like(std::string_view name) {
  std::vector<std::string_view> names, with_it;
  const std::string wanted = folded(name);
  for (const Gpu& gpu : kGpus) {
    names.push_back(gpu.name);
    if (wanted.size() >= 2 && folded(gpu.name).find(wanted) != std::string::npos)
      with_it.push_back(gpu.name);
  }
  if (!with_it.empty()) return fmt::format("{}", fmt::join(with_it, " or "));
  return std::string(nearest_name(name, names).value_or(std::string_view()));
}

const std::vector<Gpu>& sorted() {
  static const std::vector<Gpu> kSorted = [] {
    std::vector<Gpu> all(kGpus.begin(), kGpus.end());
    std::stable_sort(all.begin(), all.end(),
                     [](const Gpu& a, const Gpu& b) { return a.memory_mib < b.memory_mib; });
    return all;
  }();
  return kSorted;
}

// By its own name or the driver's.
const Gpu* find_exact(std::string_view name) {
  for (const Gpu& gpu : kGpus) {
    if (gpu.name == name) return &gpu;
  }
  const std::string wanted = folded(name);
  for (const Gpu& gpu : kGpus) {
    if (folded(gpu.name) == wanted) return &gpu;
  }
  // The driver's name: "NVIDIA A100-SXM4-80GB".
  const std::vector<std::string> words = identifying_words(name);
  for (const Gpu& gpu : kGpus) {
    if (identifying_words(gpu.product) == words) return &gpu;
  }
  return nullptr;
}

// "rtx4090" of "rtx-4090", "a100" of "a100-40gb", "rtx4090laptop" of "rtx-4090-16gb-laptop".
std::string name_without_size(const Gpu& gpu) {
  std::string text;
  std::string_view rest = gpu.name;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('-'), rest.size());
    const std::string_view word = rest.substr(0, end);
    if (!is_memory_size(word)) text += word;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

// All GPUs that a name without a size may mean, smallest memory first: "a100", "4090",
// "A100-SXM4".
std::vector<const Gpu*> gpus_called(std::string_view name) {
  std::vector<const Gpu*> found;
  std::string wanted;
  for (const std::string& word : words_in_order(name)) wanted += folded(word);
  if (wanted.empty()) return found;
  for (const Gpu& gpu : sorted()) {
    const std::string own = name_without_size(gpu);
    bool is_called = own == wanted;
    for (const std::string_view series : {"rtx", "gtx", "rx"})
      is_called = is_called || (own.starts_with(series) && own.substr(series.size()) == wanted);
    if (is_called) found.push_back(&gpu);
  }
  return found;
}

}  // namespace

int Gpu::compute_capability() const { return memfathom::compute_capability(architecture); }

double Gpu::resident_kilothreads() const {
  return multiprocessors * resident_threads_per_multiprocessor(compute_capability()) / 1024.0;
}

int resident_threads_per_multiprocessor(int compute_capability) {
  if (compute_capability <= 0) return 0;
  switch (compute_capability) {
    case 75: return 1024;
    case 86:
    case 87:
    case 89:
    case 120:
    case 121: return 1536;
    default: return 2048;
  }
}

std::span<const Gpu> gpus_by_memory() { return sorted(); }

const Gpu* find_gpu(std::string_view name) {
  if (const Gpu* gpu = find_exact(name)) return gpu;
  const std::vector<const Gpu*> called = gpus_called(name);
  return called.empty() ? nullptr : called.front();
}

std::string ambiguous_gpu_sentence(std::string_view name) {
  if (find_exact(name) != nullptr) return "";
  const std::vector<const Gpu*> called = gpus_called(name);
  if (called.size() < 2) return "";
  std::vector<std::string_view> names;
  for (const Gpu* gpu : called) names.push_back(gpu->name);
  return fmt::format("\"{}\" may be {}: the one with the smallest memory, {}, was taken", name,
                     fmt::join(names, " or "), names.front());
}

const Gpu* find_gpu_of_driver(std::string_view product, Bytes memory) {
  constexpr double kDifference = 0.06;  // memory that drivers and data sheets do not make available
  const std::vector<std::string> words = without_sizes(identifying_words(product));
  const Gpu* nearest = nullptr;
  double least = kDifference;
  for (const Gpu& gpu : kGpus) {
    if (without_sizes(identifying_words(gpu.product)) != words) continue;
    const double difference = std::abs(
        static_cast<double>(memory.count()) / static_cast<double>(gpu.memory().count()) - 1);
    if (difference <= least) {
      nearest = &gpu;
      least = difference;
    }
  }
  return nearest;
}

const Gpu& gpu_named(std::string_view name, const std::string& where) {
  if (const Gpu* gpu = find_gpu(name)) return *gpu;
  const std::string meant = names_like(name);
  throw Error(ErrorKind::kInput,
              fmt::format("{}\"{}\" is not a known GPU{}; `memfathom gpus` lists them, "
                          "or give the size: --gpu-memory 24, target.memory: 24GiB",
                          where.empty() ? "" : where + ": ", name,
                          meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant)));
}

}  // namespace memfathom
