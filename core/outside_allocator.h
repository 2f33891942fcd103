// Outside the allocator: what a PyTorch process holds on a GPU in addition to its allocator's
// segments, by GPU and stack. The coefficients are a published calibration that
// fitter/outside_fit.h fits to figures which others reported; this evaluates them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/calibration.h"

namespace memfathom {

// The published calibration that has the coefficients, and the groups of its residuals.
inline constexpr std::string_view kCurrentStackName = "current/pytorch";
inline constexpr std::string_view kLazyResiduals = "outside.lazy";
inline constexpr std::string_view kEagerResiduals = "outside.eager";
inline constexpr std::string_view kNcclResiduals = "outside.nccl";

// Names of the coefficients, in bytes. The effects of an architecture, a GPU or a release on a lazy
// stack are shares of typical_bytes(), since what is kept per thread is what differs; what the data
// do not have is 0.
namespace outside {
// About what a lazy stack holds on a GPU with so many resident threads / 1024.
double typical_bytes(double kilothreads);

inline constexpr std::string_view kBare = "outside.bare";
inline constexpr std::string_view kBarePerKilothread = "outside.bare.per_kilothread";
inline constexpr std::string_view kComputed = "outside.computed";
inline constexpr std::string_view kComputedPerKilothread = "outside.computed.per_kilothread";
inline constexpr std::string_view kEager = "outside.eager";
inline constexpr std::string_view kEagerCudnn = "outside.eager.cudnn";
inline constexpr std::string_view kNccl = "outside.nccl";

std::string architecture_effect(std::string_view architecture);
std::string gpu_effect(std::string_view architecture, int multiprocessors);
std::string release_effect(std::string_view release);
std::string eager_effect(std::string_view architecture);
std::string nccl_effect(std::string_view architecture);
}  // namespace outside

// How a stack loads kernels: at their first launch, or all of them when a library is loaded.
enum class ModuleLoading { kLazy, kEager };

// PyTorch asks for lazy loading since 1.13, where CUDA is 11.7 or later; an unspecified version is
// the current one.
ModuleLoading module_loading(std::string_view torch_version, std::string_view cuda_version);

// The release series whose messages tell it from the one before: "2.1", "2.2", "2.4", "2.10". Empty
// for earlier ones.
std::string release_series(std::string_view torch_version);

struct OutsideTarget {
  std::string architecture;  // "sm_80"; empty: unknown
  int multiprocessors = 0;   // 0: unknown
  double kilothreads = 0;    // resident threads / 1024
  std::string release;       // a release_series()
  ModuleLoading loading = ModuleLoading::kLazy;
};

// After the first kernels ran, without NCCL. `published` has the coefficients above.
double bytes_outside(const Calibration& published, const OutsideTarget& target);

// In addition, in a process that communicates with others; NVLink's share is not in it.
double nccl_bytes(const Calibration& published, const OutsideTarget& target);

}  // namespace memfathom
