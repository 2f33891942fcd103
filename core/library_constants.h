// Library constants: bytes that a process pays once, outside the allocator, such as the CUDA
// context and the kernel images of cuBLAS. This table is the only list of them: the predictor, the
// fitter, the estimator and the descriptions iterate over it. Adding a constant means adding a row.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "core/component.h"

namespace memfathom {

// Which jobs pay for a constant.
enum class ConstantCondition : std::uint8_t { kAlways, kUsesCublas, kUsesCudnn, kUsesCufft };

// What is assumed of a GPU without a calibration, and its standard error. Bytes.
struct DefaultConstant {
  double value;
  double standard_error;
};

struct LibraryConstant {
  std::string_view name;  // stored in calibrations: never changes
  Component component;    // the component of an estimate that shows it
  ConstantCondition condition;
  DefaultConstant with_pytorch;    // and with any other framework
  DefaultConstant with_memfathom;  // our own layers
  bool widens_intervals;           // its standard error is a part of the default spread
  std::string_view description;
};

namespace library_constants_detail {
inline constexpr double kMiB = 1 << 20;
}  // namespace library_constants_detail

// Constants of every job come first; a fit sees only their sum. Calibrations list them in this
// order.
//
// Lazily loaded contexts were reported between 250 and 650 MiB, one paired measurement shows 90 MiB
// more after the first forward pass, and cuDNN added about 300 MiB on an A100. Nothing is published
// for cuFFT: none is assumed.
//
// module.cublas does not widen intervals, although its value is in nearly every total: a fit sees
// only its sum with the context, and the context's standard error is the sum's (the default's
// 540 MiB are the spread of whole constants from stack to stack). It would be counted twice.
inline constexpr auto kLibraryConstants = [] {
  using library_constants_detail::kMiB;
  using enum ConstantCondition;
  return std::to_array<LibraryConstant>({
      {"context",
       Component::kContext,
       kAlways,
       {400 * kMiB, 200 * kMiB},
       {400 * kMiB, 200 * kMiB},
       true,
       "the CUDA context: driver structures, stacks of all resident threads, kernel images loaded "
       "at start"},
      {"framework",
       Component::kFramework,
       kAlways,
       {100 * kMiB, 300 * kMiB},
       {0, 0},
       true,
       "what the framework holds outside its allocator beyond the bare context: its own kernels "
       "and pools"},
      {"module.cublas",
       Component::kContext,
       kUsesCublas,
       {90 * kMiB, 60 * kMiB},
       {90 * kMiB, 60 * kMiB},
       false,
       "kernel images of cuBLAS, loaded when the first matrix product runs"},
      {"module.cudnn",
       Component::kContext,
       kUsesCudnn,
       {300 * kMiB, 200 * kMiB},
       {300 * kMiB, 200 * kMiB},
       true,
       "kernel images of cuDNN, loaded when the first convolution runs"},
      {"module.cufft",
       Component::kContext,
       kUsesCufft,
       {0, 100 * kMiB},
       {0, 100 * kMiB},
       true,
       "kernel images of cuFFT, loaded when the first transform runs"},
  });
}();

inline constexpr std::size_t kConstantCount = kLibraryConstants.size();

// The constants that every job pays for: the first rows of the table.
constexpr bool is_paid_always(const LibraryConstant& constant) {
  return constant.condition == ConstantCondition::kAlways;
}
inline constexpr auto kAlwaysCount = static_cast<std::size_t>(
    std::count_if(kLibraryConstants.begin(), kLibraryConstants.end(), is_paid_always));
static_assert(std::is_partitioned(kLibraryConstants.begin(), kLibraryConstants.end(),
                                  is_paid_always),
              "constants of every job come first");

// The row of a constant; throws if the table has no such name (at compile time for a literal).
constexpr std::size_t constant_index(std::string_view name) {
  for (std::size_t i = 0; i < kConstantCount; ++i) {
    if (kLibraryConstants[i].name == name) return i;
  }
  throw std::out_of_range("no library constant of this name");
}

// The two constants that a fit can tell apart with a calibration of our own layers.
inline constexpr std::size_t kContext = constant_index("context");
inline constexpr std::size_t kFramework = constant_index("framework");

}  // namespace memfathom
