#include "cli/status/openmetrics.h"

#include <fmt/format.h>

#include "core/printable.h"

namespace memfathom {
namespace {

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : printable(value)) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

void OpenMetrics::family(std::string_view name, std::string_view help) {
  name_ = name;
  header_ = fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, help, name);
}

void OpenMetrics::sample(const Labels& labels, std::int64_t value) {
  text_ += header_;
  header_.clear();
  std::string listed;
  for (const auto& [label, content] : labels)
    listed += fmt::format("{}{}=\"{}\"", listed.empty() ? "" : ",", label, escaped(content));
  text_ += fmt::format("{}{{{}}} {}\n", name_, listed, value);
}

std::string OpenMetrics::text() const { return text_ + "# EOF\n"; }

}  // namespace memfathom
