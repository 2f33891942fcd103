#include "cli/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/html_escaped.h"

namespace memfathom {
namespace {

constexpr std::string_view kStyle = R"(
:root { --ink: #1a1a1a; --paper: #fff; --dim: #666; --rule: #ddd; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --dim: #9aa0a6; --rule: #333; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.25rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .25rem .6rem .25rem 0; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
.verdict { padding: .6rem .9rem; border-left: .4rem solid; margin: 1rem 0; }
.fits { border-color: #228833; } .tight { border-color: #ccbb44; } .does_not_fit { border-color: #cc3311; } .unknown { border-color: #888; }
.scroll { overflow-x: auto; } .scroll svg { min-width: 40rem; } td { overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--dim); }
.grid { stroke: var(--rule); } .mark { stroke: var(--dim); stroke-dasharray: 2 3; } .line { stroke: var(--ink); stroke-width: 1.5; } .limit { stroke: #cc3311; stroke-width: 2; }
pre { overflow-x: auto; background: color-mix(in srgb, var(--dim) 12%, transparent); padding: .7rem; } .dim { color: var(--dim); }
)";

}  // namespace

std::string html_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                       const std::vector<std::size_t>& numbers) {
  const auto is_number = [&](std::size_t column) {
    return std::find(numbers.begin(), numbers.end(), column) != numbers.end();
  };
  const auto cells = [&](const HtmlRow& row, std::string_view tag) {
    std::string html = "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += fmt::format("<{}{}>{}</{}>", tag, is_number(i) ? " class=\"n\"" : "", row[i], tag);
    return html + "</tr>\n";
  };
  std::string html = "<table>\n" + cells(titles, "th");
  for (const HtmlRow& row : rows) html += cells(row, "td");
  return html_scrolled(html + "</table>\n");
}

std::string html_scrolled(std::string_view wide) {
  return fmt::format("<div class=\"scroll\" tabindex=\"0\">\n{}</div>\n", wide);
}

std::string html_text_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                            const std::vector<std::size_t>& numbers) {
  std::vector<HtmlRow> escaped = rows;
  for (HtmlRow& row : escaped) {
    for (std::string& cell : row) cell = html_escaped(cell);
  }
  return html_table(titles, escaped, numbers);
}

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>memfathom: {}</title>\n<style>{}</style>\n</head>\n<body>\n{}"
      "<p class=\"dim\">memfathom {}</p>\n</body>\n</html>\n",
      html_escaped(title), kStyle, body, MEMFATHOM_VERSION);
}

}  // namespace memfathom
