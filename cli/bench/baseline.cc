#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/bench/bench.h"
#include "cli/clock.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/json_io.h"
#include "core/suggest.h"
#include "db/store.h"

namespace memfathom {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

void require_words(const Words& words, std::size_t count, const char* usage) {
  if (words.size() != count)
    throw Error(ErrorKind::kUsage, fmt::format("usage: memfathom bench baseline {}", usage));
}

std::optional<Baseline> stored(const std::string& name, const Context& context) {
  const std::optional<Store> store = open_database_if_exists(context);
  return store ? store->find_baseline(name) : std::nullopt;
}

Baseline found(const std::string& name, const Context& context) {
  if (std::optional<Baseline> baseline = stored(name, context)) return std::move(*baseline);
  throw Error(ErrorKind::kInput,
              fmt::format("no baseline has the name or id \"{}\"; `memfathom bench baseline list` "
                          "shows them",
                          name));
}

std::string stack_text(const Environment& e) {
  std::string text;
  const auto add = [&](const char* name, const std::string& version) {
    if (!version.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version);
  };
  add("driver", e.driver);
  add("CUDA", e.cuda);
  add("cuBLAS", e.cublas);
  add("cuDNN", e.cudnn);
  add("cuFFT", e.cufft);
  add("module loading", e.module_loading);
  add(e.framework.c_str(), e.framework_version);
  return text;
}

ExitCode save(const Words& words, Context& context) {
  require_words(words, 2, "save NAME FILE");
  const BenchFile file = read_bench_file(words[1]);
  if (file.environment.gpu.empty()) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: \"context.gpu\" is missing; a baseline belongs to a device, so save "
                    "a file of `memfathom bench run`",
                    words[1]));
  }
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  const std::string id =
      store.insert_baseline({"", words[0], file.environment, utc_now(), to_text(file)});
  if (context.format == Format::kJson) {
    context.out
        << json{{"schema", "memfathom.bench-baseline/1"}, {"id", id}, {"name", words[0]}}.dump(2)
        << '\n';
  } else {
    context.out << id << '\n';
  }
  return ExitCode::kYes;
}

ExitCode list(const Words& words, Context& context) {
  require_words(words, 0, "list");
  const std::optional<Store> store = open_database_if_exists(context);
  Table table({{"id"}, {"name"}, {"device"}, {"stack"}, {"created"}, {"remarks"}});
  json listed = json::array();
  for (const Baseline& b : store ? store->baselines() : std::vector<Baseline>{}) {
    std::string remarks;
    json notes = json::array();
    for (const Annotation& annotation : store->annotations(b.id)) {
      remarks += (remarks.empty() ? "" : "; ") + annotation.note;
      notes.push_back({{"created", annotation.created}, {"note", annotation.note}});
    }
    table.add_row({b.id.substr(0, 12), b.name, b.environment.gpu, stack_text(b.environment),
                   b.created, remarks});
    listed.push_back({{"id", b.id},
                      {"name", b.name},
                      {"created", b.created},
                      {"environment", to_json(b.environment)},
                      {"annotations", notes}});
  }
  if (context.format == Format::kJson) {
    context.out << json{{"schema", "memfathom.bench-baselines/1"}, {"baselines", listed}}.dump(2)
                << '\n';
  } else {
    context.out << rendered(table, context);
  }
  return ExitCode::kYes;
}

// Prints the saved file, so that it can be compared elsewhere.
ExitCode show(const Words& words, Context& context) {
  require_words(words, 1, "show NAME|ID");
  context.out << found(words[0], context).document;
  return ExitCode::kYes;
}

ExitCode annotate(const Words& words, Context& context) {
  require_words(words, 2, "annotate NAME|ID \"REMARK\"");
  const Baseline baseline = found(words[0], context);
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  store.annotate({"", baseline.id, utc_now(), words[1]});
  context.note(fmt::format("{} ({}): {}", baseline.name, baseline.id.substr(0, 12), words[1]));
  return ExitCode::kYes;
}

}  // namespace

BenchFile bench_file_named(const std::string& file_or_baseline, const Context& context) {
  std::error_code ignored;
  if (file_or_baseline == "-" || std::filesystem::exists(file_or_baseline, ignored))
    return read_bench_file(file_or_baseline);
  if (const std::optional<Baseline> baseline = stored(file_or_baseline, context))
    return bench_file_from(baseline->document, "baseline " + file_or_baseline);
  throw Error(
      ErrorKind::kInput,
      fmt::format("\"{}\" is neither a file nor a baseline of the database; `memfathom bench "
                  "baseline list` shows these",
                  file_or_baseline));
}

ExitCode bench_baseline(const Arguments& arguments, Context& context) {
  std::string action;
  Words words;
  OptionParser options("bench baseline");
  options.positional("ACTION", action);
  options.positional("NAME", words);
  options.parse(arguments);
  if (action == "save") return save(words, context);
  if (action == "list") return list(words, context);
  if (action == "show") return show(words, context);
  if (action == "annotate") return annotate(words, context);
  static constexpr std::array<std::string_view, 4> kActions{"save", "list", "show", "annotate"};
  throw Error(ErrorKind::kUsage, fmt::format("bench baseline: unknown action \"{}\"; {}", action,
                                             suggestion(action, kActions)));
}

}  // namespace memfathom
