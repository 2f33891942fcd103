#include "estimator/readers/nvidia_smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "core/gpus.h"
#include "core/lowercase.h"
#include "core/parse_number.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxGpus = 1024;
constexpr std::int64_t kMaxMebibytes = std::int64_t{1} << 24;  // 16 TiB
constexpr std::string_view kCut = "...";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = std::min(line.find(separator), line.size());
    parts.push_back(trimmed(line.substr(0, end)));
    if (end == line.size()) return parts;
    line.remove_prefix(end + 1);
  }
}

// "20790MiB", "20790 MiB" and, of a query with nounits, "20790".
std::optional<Bytes> mebibytes(std::string_view text) {
  text = trimmed(text);
  if (text.ends_with("MiB")) text = trimmed(text.substr(0, text.size() - 3));
  const std::optional<std::int64_t> number = parse_number<std::int64_t>(text);
  if (!number || *number < 0 || *number > kMaxMebibytes) return std::nullopt;
  return Bytes{*number << 20};
}

// "|   0  NVIDIA RTX 6000 Ada Gene...    Off | ...": index and product.
std::optional<SeenGpu> named_row(std::string_view line) {
  if (!line.starts_with('|')) return std::nullopt;
  std::string_view cell = trimmed(split(line.substr(1), '|').front());
  const std::size_t space = cell.find(' ');
  const std::optional<int> index = parse_number<int>(cell.substr(0, space));
  if (!index || space == std::string_view::npos) return std::nullopt;
  cell = trimmed(cell.substr(space));
  // The state of its persistence stands at the end.
  for (const std::string_view state : {"Off", "On"}) {
    if (cell.ends_with(state)) cell = trimmed(cell.substr(0, cell.size() - state.size()));
  }
  if (cell.find("MiB") != std::string_view::npos || cell.find("N/A") != std::string_view::npos)
    return std::nullopt;  // a process, or an instance of MIG
  return SeenGpu{*index, std::string(cell), Bytes{}, Bytes{}};
}

// "20790MiB / 49140MiB" in one cell of the row below.
bool read_memory(std::string_view line, SeenGpu& gpu) {
  for (const std::string_view cell : split(line, '|')) {
    const std::vector<std::string_view> sizes = split(cell, '/');
    if (sizes.size() != 2 || !sizes[0].ends_with("MiB") || !sizes[1].ends_with("MiB")) continue;
    const std::optional<Bytes> used = mebibytes(sizes[0]);
    const std::optional<Bytes> total = mebibytes(sizes[1]);
    if (!used || !total) continue;
    gpu.used = *used;
    gpu.total = *total;
    return true;
  }
  return false;
}

std::vector<SeenGpu> read_table(const std::vector<std::string_view>& lines) {
  std::vector<SeenGpu> gpus;
  std::optional<SeenGpu> open;
  for (const std::string_view line : lines) {
    if (line.find("Processes:") != std::string_view::npos) break;
    if (open && read_memory(line, *open)) {
      gpus.push_back(std::move(*open));
      open.reset();
    } else if (std::optional<SeenGpu> gpu = named_row(line)) {
      open = std::move(gpu);
    }
    if (gpus.size() == kMaxGpus) break;
  }
  return gpus;
}

std::vector<SeenGpu> read_query(const std::vector<std::string_view>& lines) {
  std::vector<SeenGpu> gpus;
  std::vector<std::string_view> header;
  for (const std::string_view line : lines) {
    const std::vector<std::string_view> cells = split(line, ',');
    if (header.empty()) {
      if (line.find("memory.used") != std::string_view::npos) header = cells;
      continue;
    }
    if (cells.size() != header.size()) continue;
    SeenGpu gpu{static_cast<int>(gpus.size()), "", Bytes{}, Bytes{}};
    bool has_used = false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string_view column = header[i].substr(0, header[i].find(' '));
      if (column == "index") gpu.index = parse_number<int>(cells[i]).value_or(gpu.index);
      if (column == "name" || column == "gpu_name") gpu.product = cells[i];
      if (column == "memory.total") gpu.total = mebibytes(cells[i]).value_or(Bytes{});
      if (column == "memory.used") {
        const std::optional<Bytes> used = mebibytes(cells[i]);
        has_used = used.has_value();
        gpu.used = used.value_or(Bytes{});
      }
    }
    if (has_used) gpus.push_back(std::move(gpu));
    if (gpus.size() == kMaxGpus) break;
  }
  return gpus;
}

}  // namespace

std::vector<SeenGpu> parse_nvidia_smi(std::string_view text, const std::string& file) {
  constexpr std::size_t kMaxText = 1 << 20;
  const std::vector<std::string_view> lines = split(text.substr(0, kMaxText), '\n');
  std::vector<SeenGpu> gpus = read_query(lines);
  if (gpus.empty()) gpus = read_table(lines);
  if (gpus.empty()) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: no GPU of nvidia-smi's output is in it; give what `nvidia-smi` prints, or "
                    "`nvidia-smi --query-gpu=index,name,memory.total,memory.used --format=csv`",
                    file));
  }
  return gpus;
}

const SeenGpu& limiting_gpu(const std::vector<SeenGpu>& gpus, std::optional<int> index,
                            const std::string& file) {
  if (!index) {
    return *std::min_element(gpus.begin(), gpus.end(), [](const SeenGpu& a, const SeenGpu& b) {
      return a.total.count() - a.used.count() < b.total.count() - b.used.count();
    });
  }
  const auto found = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const SeenGpu& gpu) { return gpu.index == *index; });
  if (found == gpus.end())
    throw Error(ErrorKind::kInput, fmt::format("{}: it shows no GPU {}; --device-id names one of "
                                               "those that it shows",
                                               file, *index));
  return *found;
}

std::string name_of(const SeenGpu& gpu) {
  constexpr double kDifference = 0.06;  // as find_gpu_of_driver
  if (!gpu.product.ends_with(kCut)) {
    const Gpu* found = find_gpu_of_driver(gpu.product, gpu.total);
    return found != nullptr ? std::string(found->name) : "";
  }
  const std::string start = lowercase(gpu.product.substr(0, gpu.product.size() - kCut.size()));
  // The table's name may be shorter than ours or go on ("... Generation"); the longest of ours
  // that it goes on from is meant.
  const Gpu* found = nullptr;
  bool is_ambiguous = false;
  for (const Gpu& known : gpus_by_memory()) {
    const std::string product = lowercase(std::string(known.product));
    const double ratio =
        static_cast<double>(gpu.total.count()) / static_cast<double>(known.memory().count());
    const bool begins = start.starts_with(product);
    if (std::abs(ratio - 1) > kDifference || (!begins && !product.starts_with(start))) continue;
    if (found != nullptr && begins && known.product.size() < found->product.size()) continue;
    is_ambiguous = found != nullptr && !begins;
    found = &known;
  }
  return found != nullptr && !is_ambiguous ? std::string(found->name) : "";
}

}  // namespace memfathom
