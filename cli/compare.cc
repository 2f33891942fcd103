#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/commands.h"
#include "cli/estimation.h"
#include "cli/job_source.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "estimator/advise/changes.h"
#include "estimator/advise/patch.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

struct Strategy {
  std::string name;
  Patch patch;
};

struct Compared {
  std::string name;
  Estimate estimate;
  double saved = 0;  // of the baseline's device peak; negative: it takes more
};

// What people compare when they name nothing: one change at a time on one card, the ZeRO stages on
// several.
std::vector<std::string> usual_strategies(const Job& job) {
  const bool trains = job.training.mode == Mode::kTrain;
  if (!trains) return {"baseline", "bf16", "flash", "int8", "nf4", "offload-parameters"};
  if (job.parallel.num_gpus < 2) {
    return {"baseline", "checkpointing",           "flash", "bf16", "adamw-8bit", "lora", "qlora",
            "offload",  "checkpointing+adamw-8bit"};
  }
  std::vector<std::string> names{"baseline", "checkpointing", "zero1+checkpointing",
                                 "zero2+checkpointing", "zero3+checkpointing"};
  if (job.training.settings.sequence_length > 1) {
    names.push_back(
        fmt::format("zero2+checkpointing+sequence={}", job.training.settings.sequence_length / 2));
  }
  names.push_back(fmt::format("zero2+checkpointing+gpus={}", job.parallel.num_gpus * 2));
  return names;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::size_t start = 0;
  while (start <= list.size()) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    if (end > start) names.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return names;
}

std::vector<Strategy> strategies_of(const std::optional<std::string>& list,
                                    const std::vector<std::string>& patches, const Job& job) {
  std::vector<Strategy> strategies{{"baseline", {}}};
  std::vector<std::string> names;
  if (list) {
    names = split(*list);
  } else if (patches.empty()) {
    names = usual_strategies(job);
  }
  for (const std::string& name : names) {
    if (name != "baseline") strategies.push_back({name, strategy_patch(name, job)});
  }
  for (const std::string& file : patches)
    strategies.push_back({file, patch_of(load_document(file))});
  return strategies;
}

std::vector<Compared> compare(const Node& document, const std::vector<Strategy>& strategies,
                              const Context& context) {
  const Estimation estimation(context);
  std::vector<Compared> results;
  for (const Strategy& strategy : strategies) {
    try {
      Estimate estimate = estimation.answer(read_job(patched(document, strategy.patch)));
      const double peak = static_cast<double>(estimate.totals.device_peak.count());
      const double baseline =
          results.empty()
              ? peak
              : static_cast<double>(results.front().estimate.totals.device_peak.count());
      results.push_back(
          {strategy.name, std::move(estimate), baseline > 0 ? 1 - peak / baseline : 0});
    } catch (const Error& error) {
      if (results.empty() || error.kind() != ErrorKind::kInput) throw;
      context.warn(fmt::format("{} is left out: {}", strategy.name, error.what()));
    }
  }
  return results;
}

std::string json_text(const std::vector<Compared>& results) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Compared& result : results) {
    const Totals& totals = result.estimate.totals;
    nlohmann::ordered_json json{{"name", result.name},
                                {"device_peak_bytes", totals.device_peak.count()},
                                {"allocated_peak_bytes", totals.allocated_peak.count()},
                                {"saved_fraction", result.saved},
                                {"verdict", to_string(result.estimate.verdict.status)}};
    if (result.estimate.verdict.headroom)
      json["headroom_bytes"] = result.estimate.verdict.headroom->count();
    if (totals.host_peak) json["host_peak_bytes"] = totals.host_peak->count();
    list.push_back(std::move(json));
  }
  return nlohmann::ordered_json{{"schema", "memfathom.compare/1"},
                                {"baseline", results.front().name},
                                {"strategies", std::move(list)}}
      .dump(2);
}

Style style_of(VerdictStatus status) {
  switch (status) {
    case VerdictStatus::kFits: return Style::kGood;
    case VerdictStatus::kTight: return Style::kWarning;
    case VerdictStatus::kDoesNotFit: return Style::kBad;
    case VerdictStatus::kUnknown: break;
  }
  return Style::kPlain;
}

Table table_of(const std::vector<Compared>& results, bool exact) {
  Table table({{"strategy"},
               {exact ? "device_peak_bytes" : "device peak", Align::kRight},
               {exact ? "saved_fraction" : "saved", Align::kRight},
               {exact ? "headroom_bytes" : "left", Align::kRight},
               {exact ? "host_peak_bytes" : "on the host", Align::kRight},
               {"verdict"}});
  const auto size = [&](Bytes bytes) {
    return exact ? fmt::format("{}", bytes.count()) : to_string(bytes);
  };
  for (const Compared& result : results) {
    const Verdict& verdict = result.estimate.verdict;
    const std::optional<Bytes>& host = result.estimate.totals.host_peak;
    table.add_row(
        {result.name, size(result.estimate.totals.device_peak),
         exact ? fmt::format("{:.6f}", result.saved) : fmt::format("{:.1f} %", 100 * result.saved),
         verdict.headroom ? size(*verdict.headroom) : "", host ? size(*host) : "",
         Cell(to_string(verdict.status), style_of(verdict.status))});
  }
  return table;
}

}  // namespace

ExitCode run_compare(const Arguments& arguments, Context& context) {
  OptionParser parser("compare");
  JobSource source;
  std::optional<std::string> list;
  std::vector<std::string> patches;
  source.declare(parser);
  parser.option("--strategies", list);
  parser.list_option("--patch", patches);
  parser.parse(arguments);
  const Node document = source.read("compare").document;
  const std::vector<Compared> results =
      compare(document, strategies_of(list, patches, read_job(document)), context);
  if (context.format == Format::kJson) {
    context.out << json_text(results) << '\n';
  } else {
    context.out << rendered(table_of(results, context.format == Format::kCsv), context);
  }
  for (const std::string& sentence : results.front().estimate.assumptions)
    context.note("assumed: " + sentence);
  return ExitCode::kYes;
}

}  // namespace memfathom
