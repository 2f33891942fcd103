#include "cli/status/card_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/render.h"

namespace memfathom {
namespace {

std::string shown(const std::optional<Bytes>& bytes) {
  return bytes ? to_string(*bytes) : "unknown";
}

}  // namespace

std::string card_text(const LiveCard& card, const Context& context) {
  std::string text = fmt::format(
      "{} {}: {} in all, {} used, {} reserved by the driver, {} available\n", card.device,
      card.product, to_string(card.total), to_string(card.used - card.reserved.value_or(Bytes{})),
      shown(card.reserved), to_string(card.total - card.used));
  if (!card.processes.empty()) {
    Table table({{"pid", Align::kRight}, {"process"}, {"memory", Align::kRight}});
    for (const GpuProcess& process : card.processes) {
      table.add_row({fmt::format("{}", process.pid), process.name.empty() ? "?" : process.name,
                     shown(process.used)});
    }
    text += rendered(table, context);
  }
  return text + "\n";
}

nlohmann::ordered_json card_json(const LiveCard& card) {
  using Json = nlohmann::ordered_json;
  const auto nullable = [](const std::optional<Bytes>& bytes) {
    return bytes ? Json(bytes->count()) : Json(nullptr);
  };
  Json processes = Json::array();
  for (const GpuProcess& process : card.processes)
    processes.push_back(
        {{"pid", process.pid}, {"name", process.name}, {"used_bytes", nullable(process.used)}});
  return {{"name", card.device},
          {"product", card.product},
          {"gpu", card.card.empty() ? Json(nullptr) : Json(card.card)},
          {"total_bytes", card.total.count()},
          {"used_bytes", (card.used - card.reserved.value_or(Bytes{})).count()},
          {"reserved_bytes", nullable(card.reserved)},
          {"available_bytes", (card.total - card.used).count()},
          {"processes", std::move(processes)}};
}

std::vector<std::string> processes_in_words(const LiveCard& card) {
  std::vector<std::string> words;
  for (const GpuProcess& process : card.processes)
    words.push_back(fmt::format("{} (pid {}) {}", process.name.empty() ? "?" : process.name,
                                process.pid, shown(process.used)));
  return words;
}

}  // namespace memfathom
