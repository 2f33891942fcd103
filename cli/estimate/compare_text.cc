#include "cli/estimate/compare_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/language/language.h"
#include "cli/render.h"
#include "cli/text/estimate_text.h"

namespace memfathom {
namespace {

Style style_of(VerdictStatus status) {
  switch (status) {
    case VerdictStatus::kFits: return Style::kGood;
    case VerdictStatus::kTight:
    case VerdictStatus::kUndecided: return Style::kWarning;
    case VerdictStatus::kDoesNotFit: return Style::kBad;
    case VerdictStatus::kUnknown: break;
  }
  return Style::kPlain;
}

// Human-readable tables omit columns that are empty or equal in every row.
struct VisibleColumns {
  bool headroom, host, trained, verdict;
};

VisibleColumns shown_columns(const StrategyComparison& comparison) {
  const auto any = [&](auto holds) {
    return std::any_of(comparison.rows.begin(), comparison.rows.end(), holds);
  };
  const std::int64_t first = comparison.rows.front().estimate.trainable_count;
  const bool target =
      any([](const ComparedStrategy& row) { return row.estimate.verdict.headroom.has_value(); });
  return {target, any([](const ComparedStrategy& row) {
            return row.estimate.totals.host_peak.has_value();
          }),
          any([&](const ComparedStrategy& row) { return row.estimate.trainable_count != first; }),
          target || comparison.rows.front().targets.empty()};
}

std::vector<Column> columns_of(const StrategyComparison& comparison, const VisibleColumns& shown,
                               bool exact) {
  std::vector<Column> columns;
  if (comparison.columns.empty()) columns.push_back({"strategy"});
  for (const std::string& name : comparison.columns) columns.push_back({name});
  const auto add = [&](bool wanted, const char* name, const char* exact_name) {
    if (wanted || exact) columns.push_back({exact ? exact_name : name, Align::kRight});
  };
  add(true, "device peak", "device_peak_bytes");
  add(true, "saved", "saved_fraction");
  add(shown.trained, "trained", "trainable_parameters");
  add(shown.headroom, "left", "headroom_bytes");
  add(false, "", "host_peak_bytes");
  add(shown.host, "on the host", "host_node_bytes");
  if (shown.verdict || exact) columns.push_back({"verdict"});
  for (const ComparedTarget& target : comparison.rows.front().targets) {
    columns.push_back({target.name});
    if (exact) columns.push_back({target.name + "_headroom_bytes", Align::kRight});
  }
  return columns;
}

void add_targets(const ComparedStrategy& row, bool exact, Language language,
                 std::vector<Cell>& cells) {
  for (const ComparedTarget& target : row.targets) {
    const Style style = style_of(target.verdict.status);
    if (exact) {
      cells.emplace_back(to_string(target.verdict.status));
      cells.emplace_back(fmt::format("{}", target.verdict.headroom->count()));
    } else {
      const Bytes left = *target.verdict.headroom;
      cells.emplace_back(translated(language, left.count() < 0 ? "{}, {} over" : "{}, {} left",
                                    {verdict_text(target.verdict.status, language),
                                     to_string(left.count() < 0 ? -left : left)}),
                         style);
    }
  }
}

Table table_of(const StrategyComparison& comparison, bool exact, Language language) {
  const VisibleColumns shown = shown_columns(comparison);
  Table table(columns_of(comparison, shown, exact));
  const auto size = [&](const std::optional<Bytes>& bytes) {
    if (!bytes) return std::string();
    return exact ? fmt::format("{}", bytes->count()) : to_string(*bytes);
  };
  for (const ComparedStrategy& row : comparison.rows) {
    const Estimate& estimate = row.estimate;
    std::vector<Cell> cells;
    if (comparison.columns.empty()) cells.emplace_back(row.name);
    for (const std::string& name : row.grid) cells.emplace_back(name);
    cells.emplace_back(size(estimate.totals.device_peak));
    cells.emplace_back(exact ? fmt::format("{:.6f}", row.saved)
                             : fmt::format("{:.1f} %", 100 * row.saved));
    if (exact) {
      cells.emplace_back(fmt::format("{}", estimate.trainable_count));
    } else if (shown.trained) {
      cells.emplace_back(
          fmt::format("{:.2f} M", static_cast<double>(estimate.trainable_count) / 1e6));
    }
    if (shown.headroom || exact) cells.emplace_back(size(estimate.verdict.headroom));
    if (exact) cells.emplace_back(size(estimate.totals.host_peak));
    if (shown.host || exact) cells.emplace_back(size(estimate.totals.host_of_node()));
    if (shown.verdict || exact)
      cells.emplace_back(verdict_text(estimate.verdict.status, language),
                         style_of(estimate.verdict.status));
    add_targets(row, exact, language, cells);
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace

std::string comparison_text(const StrategyComparison& comparison, const Context& context) {
  return rendered(table_of(comparison, context.format == Format::kCsv, context.language), context);
}

}  // namespace memfathom
