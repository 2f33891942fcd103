// holders_text: what a recorded step holds at its peak, as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/command.h"
#include "kernels/memory/trace/peak_holders.h"

namespace memfathom {

// The largest holders; the rest in one line.
std::string holders_text(const PeakHolders& peak, HolderKey key, const Context& context);
nlohmann::ordered_json holders_json(const PeakHolders& peak, HolderKey key);

// The key that --by names. Throws Error(kUsage) with the nearest one.
HolderKey parse_holder_key(const std::string& name);

}  // namespace memfathom
