// OpenMetrics: figures in the text format that Prometheus and node_exporter's textfile collector
// read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memfathom {

class OpenMetrics {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // Begins a family of gauges; `name` has the unit as its ending, `help` is one sentence. A family
  // without samples is not written.
  void family(std::string_view name, std::string_view help);
  // Of the family begun last. Values of labels may be any text: what is not UTF-8 is replaced.
  void sample(const Labels& labels, std::int64_t value);
  std::string text() const;  // with the closing "# EOF"

 private:
  std::string name_, header_, text_;
};

}  // namespace memfathom
