// A card of this machine as text and JSON: what it has, what is left, and who holds the rest.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/estimate/live_card.h"

namespace memfathom {

std::string card_text(const LiveCard& card, const Context& context);
nlohmann::ordered_json card_json(const LiveCard& card);
// "python (pid 7) 2.00 GiB", one for each process.
std::vector<std::string> processes_in_words(const LiveCard& card);

}  // namespace memfathom
