// Peak holders: which module, operation or line of a recorded step holds what at its peak.
#pragma once

#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/enum_names.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

enum class HolderKey : std::uint8_t { kModule, kOperation, kLine };

template <>
inline constexpr auto kEnumNames<HolderKey> =
    std::to_array<EnumName<HolderKey>>({{HolderKey::kModule, "module"},
                                        {HolderKey::kOperation, "operation"},
                                        {HolderKey::kLine, "line"}});

struct PeakHolder {
  std::string name;  // empty: the trace does not say it
  Bytes bytes;
  std::size_t storages = 0;
};

struct PeakHolders {
  std::string phase;
  int iteration = 0;
  Bytes bytes;                      // the recorded storages, each rounded up to 512 bytes
  std::vector<PeakHolder> holders;  // largest first
};

// At the highest live bytes from the second iteration on; of the whole trace if it has no second
// one. Library workspaces, which a replay adds for a GPU, are not part of it.
PeakHolders peak_holders(const Trace& trace, HolderKey key);

// What is alive after the first `events` events.
PeakHolders holders_after(const Trace& trace, std::size_t events, HolderKey key);

}  // namespace memfathom
