#include "core/outside_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/version.h"

namespace memfathom {
namespace outside {

double typical_bytes(double kilothreads) {
  constexpr double kMiB = 1 << 20;
  return (50 + 2 * kilothreads) * kMiB;
}

std::string architecture_effect(std::string_view architecture) {
  return fmt::format("outside.architecture.{}", architecture);
}
std::string gpu_effect(std::string_view architecture, int multiprocessors) {
  return fmt::format("outside.gpu.{}.{}", architecture, multiprocessors);
}
std::string release_effect(std::string_view release) {
  return fmt::format("outside.release.{}", release);
}
std::string eager_effect(std::string_view architecture) {
  return fmt::format("outside.eager.architecture.{}", architecture);
}
std::string nccl_effect(std::string_view architecture) {
  return fmt::format("outside.nccl.architecture.{}", architecture);
}

}  // namespace outside

ModuleLoading module_loading(std::string_view torch_version, std::string_view cuda_version) {
  constexpr Version kAsksForLazyLoading{1, 13};
  constexpr Version kHasLazyLoading{11, 7};
  const std::optional<Version> torch = Version::parse(torch_version);
  const std::optional<Version> cuda = Version::parse(cuda_version);
  const bool is_eager =
      (torch && *torch < kAsksForLazyLoading) || (cuda && *cuda < kHasLazyLoading);
  return is_eager ? ModuleLoading::kEager : ModuleLoading::kLazy;
}

std::string release_series(std::string_view torch_version) {
  // The wording of the message changed in these (../shared/facts/context.md has the strings).
  constexpr auto kSeries = std::to_array<Version>({{2, 10}, {2, 4}, {2, 2}, {2, 1}});
  if (torch_version.empty()) return fmt::format("{}.{}", kSeries[0].major, kSeries[0].minor);
  const std::optional<Version> version = Version::parse(torch_version);
  if (!version) return "";
  for (const Version& series : kSeries) {
    if (*version >= series) return fmt::format("{}.{}", series.major, series.minor);
  }
  return "";
}

double bytes_outside(const Calibration& published, const OutsideTarget& target) {
  const auto value = [&](std::string_view name) { return published.value_of(name, 0); };
  const double bare =
      value(outside::kBare) + value(outside::kBarePerKilothread) * target.kilothreads;
  if (target.loading == ModuleLoading::kEager)
    return bare + value(outside::kEager) + value(outside::eager_effect(target.architecture));
  return bare + value(outside::kComputed) +
         value(outside::kComputedPerKilothread) * target.kilothreads +
         outside::typical_bytes(target.kilothreads) *
             (value(outside::architecture_effect(target.architecture)) +
              value(outside::gpu_effect(target.architecture, target.multiprocessors)) +
              value(outside::release_effect(target.release)));
}

double nccl_bytes(const Calibration& published, const OutsideTarget& target) {
  return std::max(0.0, published.value_of(outside::kNccl, 0) +
                           published.value_of(outside::nccl_effect(target.architecture), 0));
}

}  // namespace memfathom
