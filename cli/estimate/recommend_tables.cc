#include "cli/estimate/recommend_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/render.h"
#include "cli/text/recommend_text.h"
#include "core/error.h"
#include "core/parallel_for.h"
#include "estimator/advise/changes.h"
#include "estimator/advise/grid.h"
#include "estimator/advise/largest_extent.h"
#include "estimator/json/recommendation_json.h"

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

struct LargestRow {
  std::vector<std::string> names;
  LargestBatch batch;
};

Table table_of(const Grid& grid, const std::vector<LargestRow>& rows, bool exact) {
  std::vector<Column> columns;
  for (const std::string& name : grid.columns) columns.push_back({name});
  columns.push_back({exact ? "largest_batch" : "largest batch", Align::kRight});
  columns.push_back({exact ? "device_peak_bytes" : "device peak", Align::kRight});
  columns.push_back({exact ? "available_bytes" : "of", Align::kRight});
  Table table(std::move(columns));
  const auto size = [&](Bytes bytes) {
    return exact ? fmt::format("{}", bytes.count()) : to_string(bytes);
  };
  for (const LargestRow& row : rows) {
    std::vector<Cell> cells(row.names.begin(), row.names.end());
    cells.emplace_back(row.batch.size ? fmt::format("{}", *row.batch.size) : exact ? "" : "none");
    cells.emplace_back(row.batch.size ? size(row.batch.device_peak) : "");
    cells.emplace_back(size(row.batch.available));
    table.add_row(std::move(cells));
  }
  return table;
}

std::string json_of(const Grid& grid, const std::vector<LargestRow>& rows) {
  Json list = Json::array();
  for (const LargestRow& row : rows) {
    Json json;
    for (std::size_t i = 0; i < row.names.size(); ++i) json["grid"][grid.columns[i]] = row.names[i];
    json["largest_batch"] = row.batch.size ? Json(*row.batch.size) : Json(nullptr);
    if (row.batch.size) json["device_peak_bytes"] = row.batch.device_peak.count();
    json["available_bytes"] = row.batch.available.count();
    list.push_back(std::move(json));
  }
  return Json{{"schema", "memfathom.recommend-grid/1"}, {"rows", std::move(list)}}.dump(2);
}

// Common GPU memory classes, each with a typical GPU of its smallest size.
struct MemoryClass {
  const char* name;
  const char* gpu;
};
constexpr auto kClasses = std::to_array<MemoryClass>({
    {"80 GB and more", "a100-80gb"},
    {"40 to 80 GB", "a100-40gb"},
    {"24 to 40 GB", "rtx-4090"},
    {"below 24 GB", "rtx-4080"},
});

}  // namespace

ExitCode print_largest_batches(const JobInput& input, const std::vector<std::string>& dimensions,
                               const EstimateFunction& answer, const RecommendOptions& options,
                               const Context& context) {
  const Grid grid = make_grid(dimensions, input.job);
  std::vector<LargestRow> rows(grid.rows.size());
  parallel_for(rows.size(), [&](std::size_t i) {
    const std::optional<LargestBatch> batch =
        largest_batch(patched(input.document, grid.rows[i].patch), answer, options, input.job);
    if (!batch) {
      throw Error(ErrorKind::kUsage,
                  "recommend --grid needs a target: add --gpu rtx-4090, --gpu-memory 24, or a "
                  "dimension gpu=rtx-4090,a100-40gb");
    }
    rows[i] = {grid.rows[i].names, *batch};
  });
  context.out << (context.format == Format::kJson
                      ? json_of(grid, rows) + "\n"
                      : rendered(table_of(grid, rows, context.format == Format::kCsv), context));
  const bool all = std::all_of(rows.begin(), rows.end(),
                               [](const LargestRow& row) { return row.batch.size.has_value(); });
  return all ? ExitCode::kYes : ExitCode::kNo;
}

ExitCode print_by_memory(const JobInput& input, const EstimateFunction& answer,
                         const RecommendOptions& options, const Context& context) {
  bool any = false;
  Json list = Json::array();
  std::string text;
  Table table({{"memory"}, {"gpu"}, {"device peak", Align::kRight}, {"what to change"}});
  for (const MemoryClass& kind : kClasses) {
    const Patch target = strategy_patch(fmt::format("gpu={}", kind.gpu), input.job);
    const std::optional<Configuration> found =
        cheapest_configuration(patched(input.document, target), answer, options, input.job);
    any = any || found;
    std::string changes = !found                   ? "a smaller model or more GPUs"
                          : found->changes.empty() ? "nothing"
                                                   : "";
    if (found) {
      for (const std::string& change : found->changes)
        changes += (changes.empty() ? "" : "; ") + change;
    }
    table.add_row(
        {kind.name, kind.gpu, found ? to_string(found->device_peak) : "does not fit", changes});
    list.push_back({{"class", kind.name},
                    {"gpu", kind.gpu},
                    {"configuration", found ? configuration_json(*found, input) : Json(nullptr)}});
    if (found && !found->changes.empty())
      text +=
          configuration_text(*found, fmt::format("{} ({})", kind.name, kind.gpu), input, context);
  }
  if (context.format == Format::kJson) {
    context.out << Json{{"schema", "memfathom.recommend-by-memory/1"}, {"classes", list}}.dump(2)
                << '\n';
  } else {
    context.out << rendered(table, context);
    if (context.format != Format::kCsv) context.out << text;
  }
  return any ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace memfathom
