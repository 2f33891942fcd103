#include "estimator/gpus.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <vector>

#include "cli/commands.h"
#include "cli/estimate/estimation.h"
#include "cli/estimate/job_source.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/error.h"
#include "core/parallel_for.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

struct GpuFit {
  Gpu gpu;
  std::optional<Estimate> estimate;  // of the job, on this GPU
};

bool fits(const Estimate& estimate) {
  return estimate.verdict.status == VerdictStatus::kFits ||
         estimate.verdict.status == VerdictStatus::kTight;
}

// The job on every GPU, smallest memory first; those it does not fit on are left out.
std::vector<GpuFit> gpus_for(Node document, const Context& context) {
  const Estimation estimation(context);
  std::vector<GpuFit> gpus;
  for (const char* key : {"memory", "device", "used_by_others"}) {
    const Node* target = document.find("target");
    if (target == nullptr || target->find(key) == nullptr) continue;
    Node changed = *target;
    changed.erase(key);  // what was said about another GPU
    document.set("target", std::move(changed));
  }
  for (const Gpu& gpu : gpus_by_memory()) gpus.push_back({gpu, std::nullopt});
  parallel_for(gpus.size(), [&](std::size_t i) {
    Node placed = document;
    placed.assign("target.gpu", Node::string(std::string(gpus[i].gpu.name)));
    gpus[i].estimate = estimation.answer(read_job(placed));
  });
  std::erase_if(gpus, [](const GpuFit& gpu) { return !fits(*gpu.estimate); });
  return gpus;
}

Json to_json(const GpuFit& gpu) {
  Json json{{"name", gpu.gpu.name},
            {"memory_bytes", gpu.gpu.memory().count()},
            {"architecture", gpu.gpu.architecture},
            {"vendor", gpu.gpu.vendor},
            {"product", gpu.gpu.product},
            {"kind", gpu.gpu.kind},
            {"memory_as_shown_by_driver", gpu.gpu.as_shown}};
  if (gpu.estimate) {
    json["device_peak_bytes"] = gpu.estimate->totals.device_peak.count();
    json["headroom_bytes"] = gpu.estimate->verdict.headroom->count();
    json["verdict"] = to_string(gpu.estimate->verdict.status);
  }
  return json;
}

// `exact`: sizes as bytes, for programs.
Table table_of(const std::vector<GpuFit>& gpus, bool with_job, bool exact) {
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
                    Cell(to_string(estimate.verdict.status))});
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
  parser.parse(arguments);

  std::vector<GpuFit> gpus;
  if (only_fitting || source.given()) {
    gpus = gpus_for(source.read("gpus --fits").document, context);
    only_fitting = true;
  } else {
    for (const Gpu& gpu : gpus_by_memory()) gpus.push_back({gpu, std::nullopt});
  }
  if (context.format == Format::kJson) {
    Json list = Json::array();
    for (const GpuFit& gpu : gpus) list.push_back(to_json(gpu));
    context.out << Json{{"gpus", std::move(list)}}.dump(2) << '\n';
  } else if (gpus.empty()) {
    context.note(
        "the job fits on no card that is known here; memfathom recommend says what would make it "
        "smaller");
  } else {
    context.out << rendered(table_of(gpus, only_fitting, context.format == Format::kCsv), context);
  }
  return gpus.empty() ? ExitCode::kNo : ExitCode::kYes;
}

}  // namespace memfathom
