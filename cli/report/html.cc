#include "cli/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/html_escaped.h"

namespace memfathom {
namespace {

// Colours and layout are those of the web page (web/page/style.css).
constexpr std::string_view kStyle = R"(
:root { --ink: #16191d; --paper: #f4f5f7; --panel: #fff; --dim: #59616b; --rule: #dfe3e8; --accent: #2563a8; --soft: #eceff3; --fits: #176b2f; --tight: #8a5a00; --over: #c0271b; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e9ecf0; --paper: #101317; --panel: #191d23; --dim: #a0a9b4; --rule: #303740; --accent: #7fb2ec; --soft: #232931; --fits: #5ec97a; --tight: #e6b450; --over: #ff8a7e; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", sans-serif; color: var(--ink); background: var(--paper); max-width: 64rem; margin: 0 auto; padding: 1rem clamp(.6rem, 3vw, 2rem) 2rem; overflow-wrap: break-word; }
h1 { font-size: 1.15rem; margin: .6rem 0 1rem; } h2 { font-size: 1rem; margin: 0 0 .7rem; } p { margin: .3rem 0; }
section { background: var(--panel); border: 1px solid var(--rule); border-radius: 12px; padding: 1rem 1.2rem; margin: 0 0 1rem; min-width: 0; }
.verdict { border-left: 8px solid var(--dim); } .status { display: flex; gap: .55rem; align-items: center; font-size: 1.1rem; font-weight: 700; }
.sign { display: inline-grid; place-items: center; flex: none; width: 1.6rem; height: 1.6rem; border-radius: 50%; color: var(--panel); background: var(--dim); }
.big { font-size: clamp(1.8rem, 6vw, 2.6rem); font-weight: 700; letter-spacing: -.02em; line-height: 1.2; } .big small { font-size: 1rem; font-weight: 400; letter-spacing: 0; color: var(--dim); }
.fits { border-left-color: var(--fits); } .fits .sign { background: var(--fits); } .fits .status { color: var(--fits); }
.tight { border-left-color: var(--tight); } .tight .sign { background: var(--tight); } .tight .status { color: var(--tight); }
.does_not_fit { border-left-color: var(--over); } .does_not_fit .sign { background: var(--over); } .does_not_fit .status { color: var(--over); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .93rem; } th, td { padding: .3rem .8rem .3rem 0; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; overflow-wrap: break-word; }
th { color: var(--dim); font-size: .82rem; } tbody tr:last-child td { border-bottom: 0; } th:last-child, td:last-child { padding-right: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } td.n + td:not(.n), th.n + th:not(.n) { padding-left: .6rem; }
.cards td:not(.n) { overflow-wrap: anywhere; min-width: 5.5rem; } td:nth-child(2):last-child { overflow-wrap: anywhere; }
.key { display: inline-block; width: .75em; height: .75em; margin-right: .5em; border-radius: 3px; }
svg { display: block; width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--dim); paint-order: stroke; stroke: var(--panel); stroke-width: 3px; stroke-linejoin: round; } .narrow { display: none; }
.grid { stroke: var(--rule); } .mark { stroke: var(--dim); stroke-dasharray: 2 3; } .line { stroke: var(--ink); stroke-width: 1.5; } .limit { stroke: var(--over); stroke-width: 1.8; stroke-dasharray: 5 3; }
ul { padding-left: 1.2rem; margin: .3rem 0; } li { margin: .3rem 0; overflow-wrap: anywhere; } li b { font-size: .82rem; padding: 0 .45rem; border-radius: 6px; background: var(--soft); }
summary { cursor: pointer; color: var(--accent); margin: .3rem 0; } details + details { margin-top: .4rem; }
pre { overflow-x: auto; background: var(--soft); padding: .7rem; border-radius: 8px; font-size: .85rem; } .dim, footer { color: var(--dim); font-size: .9rem; } :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (max-width: 700px) {
  section { padding: .8rem .85rem; } .wide { display: none; } .narrow { display: block; } th, td { padding-right: .4rem; } table { font-size: .84rem; } th.n { white-space: normal; }
  .cards thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; } .cards, .cards tbody, .cards tr { display: block; }
  .cards tr { border: 1px solid var(--rule); border-radius: 10px; padding: .5rem .7rem; margin: 0 0 .6rem; }
  .cards td, .cards td.n, .cards td.n + td:not(.n) { display: grid; min-width: 0; grid-template-columns: 7.2rem minmax(0, 1fr); gap: .6rem; border: 0; padding: .1rem 0; text-align: left; white-space: normal; overflow-wrap: anywhere; } .cards td:empty { display: none; }
  .cards td::before { content: attr(data-title); color: var(--dim); } .cards td:first-child { font-weight: 700; }
}
@media print { body { background: none; max-width: none; } section { break-inside: avoid; } }
)";

// Tables with more columns become cards on narrow screens.
constexpr std::size_t kMaxNarrowColumns = 4;

std::string_view sign_of(std::string_view kind) {
  if (kind == "fits") return "✓";
  if (kind == "tight") return "!";
  if (kind == "does_not_fit") return "✕";
  return kind == "undecided" ? "?" : "·";
}

}  // namespace

std::string html_table(const HtmlRow& titles, const std::vector<HtmlRow>& rows,
                       const std::vector<std::size_t>& numbers) {
  const bool cards = titles.size() > kMaxNarrowColumns;
  const auto kind_of = [&](std::size_t column) {
    const bool is_number = std::find(numbers.begin(), numbers.end(), column) != numbers.end();
    return is_number ? " class=\"n\"" : "";
  };
  std::string html = fmt::format("<div class=\"scroll\" tabindex=\"0\">\n<table{}>\n<thead><tr>",
                                 cards ? " class=\"cards\"" : "");
  for (std::size_t i = 0; i < titles.size(); ++i)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", kind_of(i), titles[i]);
  html += "</tr></thead>\n<tbody>\n";
  for (const HtmlRow& row : rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string title = cards ? fmt::format(" data-title=\"{}\"", titles[i]) : "";
      html += fmt::format("<td{}{}>{}</td>", kind_of(i), title, row[i]);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n</div>\n";
}

std::string html_section(std::string_view title, std::string_view content) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", title, content);
}

std::string html_details(std::string_view summary, std::string_view content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", summary, content);
}

std::string html_verdict(const HtmlVerdict& verdict) {
  std::string html = fmt::format(
      "<section class=\"verdict {}\">\n<p class=\"status\"><span class=\"sign\" "
      "aria-hidden=\"true\">{}</span>{}</p>\n",
      verdict.kind, sign_of(verdict.kind), html_escaped(verdict.words));
  if (!verdict.figure.empty()) {
    html += fmt::format("<p class=\"big\">{} <small>{}</small></p>\n", html_escaped(verdict.figure),
                        html_escaped(verdict.beside));
  }
  return html + verdict.sentences + "</section>\n";
}

std::string html_chart(std::string_view wide, std::string_view narrow) {
  return fmt::format("<div class=\"wide\">\n{}</div>\n<div class=\"narrow\">\n{}</div>\n", wide,
                     narrow);
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
      "<title>memfathom: {}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}"
      "</main>\n<footer>memfathom {}</footer>\n</body>\n</html>\n",
      html_escaped(title), kStyle, body, MEMFATHOM_VERSION);
}

}  // namespace memfathom
