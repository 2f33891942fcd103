#include "profiler/process_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/error.h"
#include "profiler/rss_meter.h"

namespace memfathom {
namespace {

std::string text_of(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;  // unlike an iterator, it does not throw if the process ends meanwhile
  text << file.rdbuf();
  return text.str();
}

struct ProcessStat {
  char state = 'X';
  std::int64_t parent = 0;
};

// "4711 (a name) S 1 ...": the name may contain anything, so parsing starts after the last ')'.
std::optional<ProcessStat> stat_of(std::int64_t pid) {
  const std::string text = text_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos || end + 4 >= text.size()) return std::nullopt;
  ProcessStat stat;
  stat.state = text[end + 2];
  std::from_chars(text.data() + end + 4, text.data() + text.size(), stat.parent);
  if (stat.state == 'Z' || stat.state == 'X') return std::nullopt;
  return stat;
}

std::multimap<std::int64_t, std::int64_t> children_by_parent() {
  std::multimap<std::int64_t, std::int64_t> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    std::int64_t pid = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure != std::errc{} || end != name.data() + name.size()) continue;
    if (const std::optional<ProcessStat> stat = stat_of(pid)) children.emplace(stat->parent, pid);
  }
  return children;
}

}  // namespace

std::vector<std::int64_t> process_tree(std::int64_t pid) {
  if (!stat_of(pid)) return {};
  const std::multimap<std::int64_t, std::int64_t> children = children_by_parent();
  std::vector<std::int64_t> tree{pid};
  for (std::size_t next = 0; next < tree.size(); ++next) {
    const auto [begin, end] = children.equal_range(tree[next]);
    for (auto child = begin; child != end; ++child) {
      if (std::find(tree.begin(), tree.end(), child->second) == tree.end())
        tree.push_back(child->second);
    }
  }
  return tree;
}

ProcessWatch::ProcessWatch(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {
  if (!nvml_) return;
  gpus_.resize(static_cast<std::size_t>(nvml_->device_count()));
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    gpus_[i].before = nvml_->device_used(static_cast<int>(i));
    gpus_[i].most = gpus_[i].before.value_or(Bytes{});
  }
}

bool ProcessWatch::read(std::int64_t pid) {
  const std::vector<std::int64_t> tree = process_tree(pid);
  if (tree.empty()) return false;
  ++readings_;
  if (nvml_) {
    read_gpus(tree);
  } else {
    read_resident(tree);
  }
  return true;
}

void ProcessWatch::read_gpus(const std::vector<std::int64_t>& tree) {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    Bytes held;
    for (const GpuProcess& process : nvml_->processes(static_cast<int>(i))) {
      const bool ours = std::find(tree.begin(), tree.end(), process.pid) != tree.end();
      if (ours && process.used) held += *process.used;
    }
    gpus_[i].peak = std::max(gpus_[i].peak, held);
    gpus_[i].most =
        std::max(gpus_[i].most, nvml_->device_used(static_cast<int>(i)).value_or(Bytes{}));
  }
}

void ProcessWatch::read_resident(const std::vector<std::int64_t>& tree) {
  Bytes held;
  for (const std::int64_t pid : tree) {
    const std::string status = text_of(fmt::format("/proc/{}/status", pid));
    held += status_bytes(status, "VmRSS").value_or(Bytes{});
    // The kernel's high-water mark includes peaks between two readings.
    resident_ = std::max(resident_, status_bytes(status, "VmHWM").value_or(Bytes{}));
  }
  resident_ = std::max(resident_, held);
}

std::optional<WatchedPeak> ProcessWatch::peak() const {
  if (!nvml_) {
    if (resident_.count() == 0) return std::nullopt;
    return WatchedPeak{resident_, -1, "rss"};
  }
  const auto heaviest = std::max_element(
      gpus_.begin(), gpus_.end(), [](const GpuUse& a, const GpuUse& b) { return a.peak < b.peak; });
  if (heaviest == gpus_.end() || heaviest->peak.count() == 0) return std::nullopt;
  return WatchedPeak{heaviest->peak, static_cast<int>(heaviest - gpus_.begin()), "nvml-process"};
}

std::optional<WatchedPeak> ProcessWatch::device_growth() const {
  const auto heaviest =
      std::max_element(gpus_.begin(), gpus_.end(),
                       [](const GpuUse& a, const GpuUse& b) { return a.growth() < b.growth(); });
  if (heaviest == gpus_.end() || heaviest->growth() == Bytes{}) return std::nullopt;
  return WatchedPeak{heaviest->growth(), static_cast<int>(heaviest - gpus_.begin()), "nvml-device"};
}

}  // namespace memfathom
