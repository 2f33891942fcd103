#include "core/error.h"

namespace memfathom {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage: return "usage";
    case ErrorKind::kInput: return "input";
    case ErrorKind::kEnvironment: return "environment";
    case ErrorKind::kOutOfMemory: return "out_of_memory";
    case ErrorKind::kInternal: return "internal";
  }
  return "internal";
}

}  // namespace memfathom
