#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/job/job_source.h"
#include "cli/language/language.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "cli/text/estimate_text.h"
#include "estimator/json/estimate_json.h"
#include "estimator/json/lists_json.h"
#include "estimator/readers/unread_keys.h"
#include "estimator/session/gpus_for_job.h"

namespace memfathom {
namespace {

// `exact`: sizes in bytes, for machine-readable output.
Table table_of(const std::vector<GpuFit>& gpus, bool with_job, bool exact, Language language) {
  const auto size = [&](Bytes bytes) {
    return exact ? fmt::format("{}", bytes.count()) : to_string(bytes);
  };
  std::vector<Column> columns{
      {"name"}, {"memory", Align::kRight}, {"architecture"}, {"kind"}, {"product"}};
  if (with_job)
    columns.insert(columns.begin() + 2,
                   {{"job", Align::kRight}, {"left", Align::kRight}, {"verdict"}});
  Table table(columns);
  for (const GpuFit& gpu : gpus) {
    std::vector<Cell> cells{gpu.gpu.name, size(gpu.gpu.memory()), gpu.gpu.architecture,
                            gpu.gpu.kind, gpu.gpu.product};
    if (gpu.estimate) {
      const Estimate& estimate = *gpu.estimate;
      cells.insert(cells.begin() + 2,
                   {Cell(size(estimate.totals.device_peak)), Cell(size(*estimate.verdict.headroom)),
                    Cell(verdict_text(estimate.verdict.status, language))});
    }
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace

ExitCode run_gpus(const Arguments& arguments, Context& context) {
  OptionParser parser("gpus");
  JobSource source;
  bool only_fitting = false;
  source.declare(parser);
  parser.flag("--fits", only_fitting);
  parser.parse(source.without_command(arguments));

  std::vector<GpuFit> gpus;
  if (only_fitting || source.given()) {
    const JobInput input = source.read("gpus --fits");
    for (const std::string& sentence : unread_sentences(input.files.unread)) context.warn(sentence);
    gpus = gpus_for_job(input, LocalSession(find_database(context)).estimator());
    only_fitting = true;
  } else {
    gpus = list_gpus();
  }
  if (context.format == Format::kJson) {
    context.out << to_text(gpus_json(gpus), kIndented) << '\n';
  } else if (gpus.empty()) {
    context.note(
        "the job fits on none of the listed GPUs; run memfathom recommend for changes that make it "
        "smaller");
  } else {
    context.out << rendered(
        table_of(gpus, only_fitting, context.format == Format::kCsv, context.language), context);
  }
  return gpus.empty() ? ExitCode::kNo : ExitCode::kYes;
}

}  // namespace memfathom
