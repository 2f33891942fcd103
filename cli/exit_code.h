// Exit codes: the one place that decides what the program returns (docs/exit-codes.md).
#pragma once

#include "core/error.h"

namespace memfathom {

enum class ExitCode : int {
  kYes = 0,    // fits or tight, done, no regression
  kNo = 1,     // does not fit, regression found, self-test failed
  kUsage = 2,  // bad usage or bad input
  kUndecided =
      3,  // only with --strict: no matching calibration, or the interval straddles the capacity
  kEnvironment = 4,  // a device or the environment failed
  kBug = 70,         // internal error
};

constexpr ExitCode exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kInput: return ExitCode::kUsage;
    case ErrorKind::kEnvironment:
    case ErrorKind::kOutOfMemory: return ExitCode::kEnvironment;
    case ErrorKind::kInternal: return ExitCode::kBug;
  }
  return ExitCode::kBug;
}

}  // namespace memfathom
