// The commands `observations` and `samples`: list what is stored, set rows aside and take them
// back.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/name_lookup.h"
#include "core/suggest.h"
#include "db/store.h"

namespace memfathom {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

constexpr std::size_t kShownDigits = 12;
constexpr std::array<std::string_view, 3> kActions{"list", "remove", "restore"};

// A kind of row that can be set aside: its name, and how the store lists it.
struct Kind {
  std::string_view command;
  std::vector<NamedEntry> (*entries)(const Store& store);
  ExitCode (*list)(const std::optional<Store>& store, Context& context);
};

std::string state_text(const std::optional<Removal>& removal) {
  if (!removal) return "used";
  return removal->reason.empty() ? "removed" : fmt::format("removed: {}", removal->reason);
}

json removal_json(const std::optional<Removal>& removal) {
  if (!removal) return nullptr;
  return {{"created", removal->created}, {"reason", removal->reason}};
}

json bytes_json(const std::optional<Bytes>& bytes) {
  return bytes ? json(bytes->count()) : json(nullptr);
}

std::string bytes_text(const std::optional<Bytes>& bytes) {
  return bytes ? to_string(*bytes) : std::string();
}

std::vector<StoredSample> all_samples(const Store& store) {
  SampleFilter filter;
  filter.include_virtual = true;
  filter.include_removed = true;
  return store.samples(filter);
}

void print(const json& object, Context& context) { context.out << object.dump(2) << '\n'; }

ExitCode list_observations(const std::optional<Store>& store, Context& context) {
  Table table(
      {{"id"}, {"gpu"}, {"metric"}, {"measured", Align::kRight}, {"source"}, {"state"}, {"job"}});
  json listed = json::array();
  for (const StoredObservation& stored :
       store ? store->stored_observations() : std::vector<StoredObservation>()) {
    const Observation& o = stored.observation;
    const std::string fits = o.fits.value_or(false) ? "fits" : "does not fit";
    table.add_row({stored.id.substr(0, kShownDigits), o.gpu, to_string(o.metric),
                   o.bytes ? to_string(*o.bytes) : fits, o.source, state_text(stored.removal),
                   o.job});
    listed.push_back({{"id", stored.id},
                      {"job", o.job},
                      {"metric", to_string(o.metric)},
                      {"bytes", bytes_json(o.bytes)},
                      {"fits", o.fits ? json(*o.fits) : json(nullptr)},
                      {"gpu", o.gpu},
                      {"source", o.source},
                      {"group", o.group},
                      {"note", o.note},
                      {"removed", removal_json(stored.removal)}});
  }
  if (context.format == Format::kJson) {
    print({{"schema", "memfathom.observations/1"}, {"observations", listed}}, context);
  } else {
    context.out << rendered(table, context);
  }
  return ExitCode::kYes;
}

ExitCode list_samples(const std::optional<Store>& store, Context& context) {
  Table table({{"id"},
               {"device"},
               {"workload"},
               {"status"},
               {"device peak", Align::kRight},
               {"state"},
               {"run"}});
  json listed = json::array();
  for (const StoredSample& stored : store ? all_samples(*store) : std::vector<StoredSample>()) {
    const Sample& s = stored.sample;
    table.add_row({stored.id.substr(0, kShownDigits), stored.environment->gpu, s.workload,
                   to_string(s.status), bytes_text(s.device_peak), state_text(stored.removal),
                   stored.run.substr(0, kShownDigits)});
    listed.push_back({{"id", stored.id},
                      {"run", stored.run},
                      {"number", stored.number},
                      {"device", stored.environment->gpu},
                      {"workload", s.workload},
                      {"family", s.family},
                      {"status", to_string(s.status)},
                      {"allocated_peak_bytes", bytes_json(s.allocated_peak)},
                      {"reserved_peak_bytes", bytes_json(s.reserved_peak)},
                      {"device_peak_bytes", bytes_json(s.device_peak)},
                      {"removed", removal_json(stored.removal)}});
  }
  if (context.format == Format::kJson) {
    print({{"schema", "memfathom.samples/1"}, {"samples", listed}}, context);
  } else {
    context.out << rendered(table, context);
  }
  return ExitCode::kYes;
}

std::vector<NamedEntry> observation_entries(const Store& store) {
  std::vector<NamedEntry> entries;
  for (const StoredObservation& stored : store.stored_observations())
    entries.push_back({stored.id, ""});
  return entries;
}

std::vector<NamedEntry> sample_entries(const Store& store) {
  std::vector<NamedEntry> entries;
  for (const StoredSample& stored : all_samples(store)) entries.push_back({stored.id, ""});
  return entries;
}

constexpr Kind kObservations{"observations", observation_entries, list_observations};
constexpr Kind kSamples{"samples", sample_entries, list_samples};

// The ids that the words name. All are found before anything is changed.
Words ids_of(const Words& words, const Kind& kind, const Store& store) {
  const std::vector<NamedEntry> entries = kind.entries(store);
  Words ids;
  for (const std::string& word : words) {
    const std::optional<std::size_t> found =
        word.empty() ? std::nullopt : find_by_name_or_id(entries, word, kind.command);
    if (!found) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: no row has the id \"{}\"; `memfathom {} list` shows all ids",
                              kind.command, word.substr(0, 64), kind.command));
    }
    ids.push_back(entries[*found].id);
  }
  return ids;
}

ExitCode change(const Kind& kind, bool removed, const Words& words, const std::string& reason,
                Context& context) {
  const char* const action = removed ? "remove" : "restore";
  if (words.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("usage: memfathom {} {} ID ...", kind.command, action));
  }
  const std::filesystem::path path = database_path(context);
  if (!Store::open_if_exists(path)) {
    throw Error(ErrorKind::kInput, fmt::format("{} does not exist or is empty; name a database "
                                               "with --db",
                                               path.string()));
  }
  Store store = Store::open(path, Store::Mode::kReadWrite);
  const Words ids = ids_of(words, kind, store);
  const std::string now = utc_now();
  Table table({{"id"}, {action}});
  json changes = json::array();
  Store::Batch batch(store);
  for (const std::string& id : ids) {
    const bool changed = store.set_removed(id, removed, now, reason);
    table.add_row({id.substr(0, kShownDigits), changed ? "done" : "it was so already"});
    changes.push_back({{"id", id}, {"changed", changed}});
  }
  batch.commit();
  if (context.format == Format::kJson) {
    print({{"schema", "memfathom.removals/1"}, {"action", action}, {"rows", changes}}, context);
  } else {
    context.out << rendered(table, context);
  }
  if (removed) {
    context.note(
        fmt::format("the rows stay stored and are not used; memfathom {} restore ID takes "
                    "them back",
                    kind.command));
  }
  return ExitCode::kYes;
}

ExitCode run_kind(const Kind& kind, const Arguments& arguments, Context& context) {
  std::string action;
  std::string reason;
  Words words;
  OptionParser options(kind.command);
  options.positional("ACTION", action);
  options.positional("ID", words);
  options.option("--reason", reason);
  options.parse(arguments);
  if (action == "list") {
    if (!words.empty())
      throw Error(ErrorKind::kUsage, fmt::format("usage: memfathom {} list", kind.command));
    return kind.list(open_database_if_exists(context), context);
  }
  if (action == "remove") return change(kind, true, words, reason, context);
  if (action == "restore") return change(kind, false, words, reason, context);
  throw Error(ErrorKind::kUsage, fmt::format("{}: unknown action \"{}\"; {}", kind.command, action,
                                             suggestion(action, kActions)));
}

}  // namespace

ExitCode run_observations(const Arguments& arguments, Context& context) {
  return run_kind(kObservations, arguments, context);
}

ExitCode run_samples(const Arguments& arguments, Context& context) {
  return run_kind(kSamples, arguments, context);
}

}  // namespace memfathom
