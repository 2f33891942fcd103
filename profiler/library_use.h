// LibraryUse: the libraries that a job calls. Each has a constant of its own in
// core/library_constants.h, and code that measures or shows them one by one iterates over
// kMeasuredLibraries.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "core/library_constants.h"

namespace memfathom {

struct LibraryUse {
  bool cublas = false;
  bool cudnn = false;
  bool cufft = false;

  bool operator==(const LibraryUse&) const = default;
};

struct MeasuredLibrary {
  const char* name;   // of the probe's stage and in "module.NAME"
  const char* title;  // as its vendor writes it
  const char* calls;  // what jobs use it for
  bool LibraryUse::*used;
};
inline constexpr std::array<MeasuredLibrary, 3> kMeasuredLibraries{{
    {"cublas", "cuBLAS", "products", &LibraryUse::cublas},
    {"cudnn", "cuDNN", "convolutions", &LibraryUse::cudnn},
    {"cufft", "cuFFT", "transforms", &LibraryUse::cufft},
}};
static_assert(sizeof(LibraryUse) == kMeasuredLibraries.size(), "every member has a row");
static_assert(kMeasuredLibraries.size() == kConstantCount - kAlwaysCount &&
                  std::ranges::all_of(
                      kMeasuredLibraries,
                      [](std::string_view library) {
                        return std::ranges::any_of(
                            kLibraryConstants,
                            [&](std::string_view constant) {
                              return constant.starts_with("module.") &&
                                     constant.substr(7) == library;
                            },
                            &LibraryConstant::name);
                      },
                      &MeasuredLibrary::name),
              "every constant of a library has a row");

}  // namespace memfathom
