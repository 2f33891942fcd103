#include "estimator/advise/grid.h"

#include <fmt/format.h>

#include "core/error.h"
#include "estimator/advise/changes.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxRows = 10000;

struct Dimension {
  std::string name;
  std::vector<GridRow> alternatives;  // of one column
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start <= list.size()) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    if (end > start) parts.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

Dimension dimension_of(const std::string& text, const Job& job) {
  const std::size_t equals = text.find('=');
  const bool keyed = equals != std::string::npos && equals < text.find_first_of(",+");
  Dimension dimension{keyed ? text.substr(0, equals) : "strategy", {}};
  for (const std::string& part : split(keyed ? text.substr(equals + 1) : text)) {
    const std::string strategy = keyed ? fmt::format("{}={}", dimension.name, part) : part;
    dimension.alternatives.push_back({{part}, strategy_patch(strategy, job)});
  }
  if (dimension.alternatives.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--grid {}: it names no alternatives; write batch=4,2,1 or "
                            "baseline,checkpointing",
                            text));
  }
  return dimension;
}

}  // namespace

Grid make_grid(const std::vector<std::string>& dimensions, const Job& job) {
  Grid grid;
  grid.rows.push_back({});
  for (const std::string& text : dimensions) {
    const Dimension dimension = dimension_of(text, job);
    grid.columns.push_back(dimension.name);
    if (grid.rows.size() * dimension.alternatives.size() > kMaxRows) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--grid asks for more than {} combinations; name fewer", kMaxRows));
    }
    std::vector<GridRow> longer;
    for (const GridRow& row : grid.rows) {
      for (const GridRow& alternative : dimension.alternatives) {
        GridRow next = row;
        next.names.push_back(alternative.names.front());
        next.patch = joined(std::move(next.patch), alternative.patch);
        longer.push_back(std::move(next));
      }
    }
    grid.rows = std::move(longer);
  }
  return grid;
}

}  // namespace memfathom
