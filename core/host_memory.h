// The memory of the machine that this process runs on.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>

#include "core/bytes.h"

namespace memfathom {

// Nothing where the system does not tell.
inline std::optional<Bytes> host_memory() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
  const std::int64_t size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || size <= 0) return std::nullopt;
  return Bytes{pages} * size;
}

}  // namespace memfathom
