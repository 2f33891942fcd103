#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/suggest.h"
#include "db/calibration_file.h"
#include "db/store.h"

namespace memfathom {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

void print(const json& document, Context& context) { context.out << document.dump(2) << '\n'; }

void require_words(const Words& words, std::size_t least, std::size_t most, const char* usage) {
  if (words.size() < least || words.size() > most) {
    throw Error(ErrorKind::kUsage, fmt::format("usage: memfathom db {}", usage));
  }
}

ExitCode info(const Words& words, Context& context) {
  require_words(words, 0, 0, "info");
  const StoreInfo info = Store::open(database_path(context), Store::Mode::kReadOnly).info();
  if (context.format == Format::kJson) {
    json rows;
    for (const TableCount& count : info.tables) rows[count.table] = count.rows;
    print({{"schema", "memfathom.db-info/1"},
           {"path", info.path},
           {"schema_version", info.schema},
           {"file_bytes", info.file_bytes.count()},
           {"fingerprint", info.fingerprint},
           {"rows", rows}},
          context);
    return ExitCode::kYes;
  }
  Table table({{"property"}, {"value", Align::kRight}});
  table.add_row({"file", info.path});
  table.add_row({"schema", std::to_string(info.schema)});
  table.add_row({"size", to_string(info.file_bytes)});
  table.add_row({"fingerprint", info.fingerprint});
  table.add_rule();
  for (const TableCount& count : info.tables)
    table.add_row({count.table, std::to_string(count.rows)});
  context.out << rendered(table, context);
  return ExitCode::kYes;
}

ExitCode check(const Words& words, Context& context) {
  require_words(words, 0, 0, "check");
  const std::filesystem::path path = database_path(context);
  const Words problems = Store::open(path, Store::Mode::kReadOnly).check();
  if (context.format == Format::kJson) {
    print({{"schema", "memfathom.db-check/1"},
           {"path", path.string()},
           {"ok", problems.empty()},
           {"problems", problems}},
          context);
  } else {
    for (const std::string& problem : problems) context.out << problem << '\n';
    if (problems.empty()) context.out << "ok\n";
  }
  return problems.empty() ? ExitCode::kYes : ExitCode::kNo;
}

ExitCode backup(const Words& words, Context& context) {
  require_words(words, 1, 1, "backup FILE");
  Store::open(database_path(context), Store::Mode::kReadOnly).backup(words[0]);
  if (context.format == Format::kJson) {
    print({{"schema", "memfathom.db-backup/1"}, {"path", words[0]}}, context);
  } else {
    context.out << words[0] << '\n';
  }
  return ExitCode::kYes;
}

std::vector<Calibration> selected_calibrations(const Store& store,
                                               std::span<const std::string> names) {
  if (names.empty()) return store.calibrations();
  std::vector<Calibration> chosen;
  for (const std::string& name : names) {
    std::optional<Calibration> found = store.find_calibration(name);
    if (!found) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("no calibration has the name or id \"{}\"; `memfathom calibrations list` "
                      "shows them",
                      name));
    }
    chosen.push_back(std::move(*found));
  }
  return chosen;
}

ExitCode export_files(const Words& words, Context& context) {
  require_words(words, 1, words.size(), "export FOLDER [NAME|ID ...]");
  const Store store = Store::open(database_path(context), Store::Mode::kReadOnly);
  const std::vector<Calibration> chosen = selected_calibrations(store, std::span(words).subspan(1));
  Words files;
  for (const auto& path : export_calibrations(chosen, words[0])) files.push_back(path.string());
  if (context.format == Format::kJson) {
    print({{"schema", "memfathom.db-export/1"}, {"files", files}}, context);
  } else {
    for (const std::string& file : files) context.out << file << '\n';
  }
  if (files.empty()) context.note("the database has no calibrations: nothing was exported");
  return ExitCode::kYes;
}

ExitCode import_files(const Words& words, Context& context) {
  require_words(words, 1, words.size(), "import FILE ...");
  // Reads all files before storing any: a bad file stops the import without changes.
  std::vector<Calibration> calibrations;
  for (const std::string& file : words) calibrations.push_back(read_calibration_file(file));
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  Store::Batch batch(store);
  Table table({{"calibration"}, {"id"}, {"import"}});
  json imported = json::array();
  for (const Calibration& calibration : calibrations) {
    const bool added = store.import_calibration(calibration);
    table.add_row({calibration.name, calibration.id, added ? "added" : "there already"});
    imported.push_back({{"name", calibration.name}, {"id", calibration.id}, {"added", added}});
  }
  batch.commit();
  if (context.format == Format::kJson) {
    print({{"schema", "memfathom.db-import/1"}, {"calibrations", imported}}, context);
  } else {
    context.out << rendered(table, context);
  }
  return ExitCode::kYes;
}

ExitCode merge(const Words& words, Context& context) {
  require_words(words, 1, words.size(), "merge FILE ...");
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  Table table({{"from"},
               {"runs", Align::kRight},
               {"samples", Align::kRight},
               {"observations", Align::kRight},
               {"calibrations", Align::kRight},
               {"baselines", Align::kRight},
               {"annotations", Align::kRight},
               {"removals", Align::kRight}});
  json merged = json::array();
  for (const std::string& file : words) {
    const MergeCounts added = store.merge(Store::open(file, Store::Mode::kReadOnly));
    table.add_row({file, std::to_string(added.runs), std::to_string(added.samples),
                   std::to_string(added.observations), std::to_string(added.calibrations),
                   std::to_string(added.baselines), std::to_string(added.annotations),
                   std::to_string(added.removals)});
    merged.push_back({{"from", file},
                      {"runs", added.runs},
                      {"samples", added.samples},
                      {"observations", added.observations},
                      {"calibrations", added.calibrations},
                      {"baselines", added.baselines},
                      {"annotations", added.annotations},
                      {"removals", added.removals}});
  }
  if (context.format == Format::kJson) {
    print({{"schema", "memfathom.db-merge/1"}, {"added", merged}}, context);
  } else {
    context.out << rendered(table, context);
  }
  return ExitCode::kYes;
}

struct DbAction {
  std::string_view name;
  ExitCode (*run)(const Words& words, Context& context);
};

constexpr std::array kActions{DbAction{"info", info},           DbAction{"check", check},
                              DbAction{"backup", backup},       DbAction{"export", export_files},
                              DbAction{"import", import_files}, DbAction{"merge", merge}};

}  // namespace

ExitCode run_db(const Arguments& arguments, Context& context) {
  std::string name;
  Words words;
  OptionParser options("db");
  options.positional("ACTION", name);
  options.positional("FILE", words);
  options.parse(arguments);
  std::vector<std::string_view> names;
  for (const DbAction& action : kActions) {
    if (action.name == name) return action.run(words, context);
    names.push_back(action.name);
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("db: unknown action \"{}\"; {}", name, suggestion(name, names)));
}

}  // namespace memfathom
