#include "profiler/virtual_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/workspace_features.h"

namespace memfathom {
namespace {

using namespace literals;

constexpr Bytes kPage = 2_MiB;
constexpr Bytes kMemory = 24_GiB;
constexpr double kScatter = 0.001;  // relative, of one reading

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// 0..1: random number `which` derived from the hash.
double part(std::uint64_t hash, std::uint64_t which) {
  return static_cast<double>(mixed(hash + which * 0x9E3779B97F4A7C15ULL) >> 11) * 0x1p-53;
}

Bytes between(Bytes low, Bytes high, double share) {
  const auto width = static_cast<double>((high - low).count());
  return (low + Bytes{static_cast<std::int64_t>(share * width)}).rounded_up(kPage);
}

Bytes share_of(double bytes) { return Bytes{static_cast<std::int64_t>(bytes)}; }

bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace

std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return mixed(hash);
}

VirtualGpu::VirtualGpu(std::string_view name)
    : name_(name.substr(0, name.find('+'))),
      planted_(name.substr(name_.size())),
      hash_(stable_hash(name_)) {
  if (!is_plain(name_)) {
    throw Error(ErrorKind::kInput,
                fmt::format("\"virtual:{}\" is not a valid virtual GPU name; use letters, digits, "
                            "'-', '_' or '.' after virtual:",
                            name_));
  }
  truth_.context = between(250_MiB, 600_MiB, part(hash_, 1));
  truth_.cublas = between(40_MiB, 140_MiB, part(hash_, 2));
  truth_.cudnn = between(120_MiB, 360_MiB, part(hash_, 3));
  truth_.cufft = between(10_MiB, 60_MiB, part(hash_, 4));
  truth_.convolution_factor = 0.2 + part(hash_, 5);
  truth_.transform_factor = 0.5 + part(hash_, 6);
  for (std::string_view rest = planted_; !rest.empty();) {
    const std::size_t end = std::min(rest.find('+', 1), rest.size());
    plant(rest.substr(1, end - 1));
    rest.remove_prefix(end);
  }
}

void VirtualGpu::plant(std::string_view change) {
  const std::size_t equals = std::min(change.find('='), change.size());
  const std::string_view what = change.substr(0, equals);
  const std::string_view value = change.substr(std::min(equals + 1, change.size()));
  if (what == "context") {
    truth_.context += parse_bytes(value);
    return;
  }
  if (what == "defect") {
    truth_.context += parse_bytes(value);
    has_defect_ = true;
    return;
  }
  if (what == "slack") {
    truth_.slack += parse_bytes(value);
    return;
  }
  double factor = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), factor);
  const bool is_number = failure == std::errc{} && end == value.data() + value.size();
  if (what != "workspace" || !is_number || !(factor > 0 && factor <= 100)) {
    throw Error(ErrorKind::kInput,
                fmt::format("\"{}\" is not a known virtual GPU change; use context=300MiB, "
                            "workspace=1.5, slack=64MiB or defect=300MiB",
                            change));
  }
  truth_.convolution_factor *= factor;
  truth_.transform_factor *= factor;
}

Environment VirtualGpu::environment() const {
  Environment environment;
  environment.gpu = "virtual:" + name_;
  environment.architecture = "virtual";
  environment.memory_total = kMemory;
  environment.driver = "simulated" + (has_defect_ ? "" : planted_);
  environment.framework = "memfathom";
  return environment;
}

WorkspaceSize VirtualGpu::convolution(const ConvolutionQuery& query) const {
  const WorkspaceFeatures features = features_of(query);
  return {share_of(truth_.convolution_factor * (features[kTermInput] + features[kTermOutput])),
          Source::kDefault};
}

WorkspaceSize VirtualGpu::fft(const FftQuery& query) const {
  return {share_of(truth_.transform_factor * features_of(query)[kTermInput]), Source::kDefault};
}

Bytes VirtualGpu::reading(Bytes truly_used, std::uint64_t seed) const {
  // The sum of two uniform numbers has a triangular distribution, without large outliers.
  const double scatter = kScatter * (part(hash_ ^ seed, 7) + part(hash_ ^ seed, 8) - 1);
  return share_of(static_cast<double>(truly_used.count()) * (1 + scatter)).rounded_up(kPage);
}

}  // namespace memfathom
