#include "cli/text/holders_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/render.h"
#include "cli/text/count_text.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/suggest.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxLines = 20;

}  // namespace

HolderKey parse_holder_key(const std::string& name) {
  const std::optional<HolderKey> key = enum_from_name<HolderKey>(name);
  if (!key) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--by is \"{}\"; {}", name, suggestion(name, kNamesOf<HolderKey>)));
  }
  return *key;
}

std::string holders_text(const PeakHolders& peak, HolderKey key, const Context& context) {
  Table table({{std::string(enum_name(key))},
               {"memory", Align::kRight},
               {"share", Align::kRight},
               {"storages", Align::kRight}});
  Bytes rest;
  std::size_t others = 0;
  std::size_t storages = 0;
  for (std::size_t i = 0; i < peak.holders.size(); ++i) {
    const PeakHolder& holder = peak.holders[i];
    if (i >= kMaxLines) {
      rest += holder.bytes;
      storages += holder.storages;
      ++others;
      continue;
    }
    table.add_row({holder.name.empty() ? "(not recorded)" : printable(holder.name),
                   to_string(holder.bytes), share_text(holder.bytes, peak.bytes),
                   std::to_string(holder.storages)});
  }
  if (others > 0) {
    table.add_row({fmt::format("{} others", others), to_string(rest), share_text(rest, peak.bytes),
                   std::to_string(storages)});
  }
  const std::string heading =
      context.format == Format::kCsv
          ? ""
          : fmt::format("\nrecorded tensors alive: {} in {} of iteration {}\n",
                        to_string(peak.bytes), printable(peak.phase), peak.iteration);
  return heading + rendered(table, context);
}

nlohmann::ordered_json holders_json(const PeakHolders& peak, HolderKey key) {
  nlohmann::ordered_json holders = nlohmann::ordered_json::array();
  for (const PeakHolder& holder : peak.holders) {
    holders.push_back(
        {{"name", holder.name}, {"bytes", holder.bytes.count()}, {"storages", holder.storages}});
  }
  return {{"by", enum_name(key)},
          {"phase", peak.phase},
          {"iteration", peak.iteration},
          {"bytes", peak.bytes.count()},
          {"holders", std::move(holders)}};
}

}  // namespace memfathom
