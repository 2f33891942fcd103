// Renders tables in the requested format. Each command writes its own JSON.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/language/language.h"
#include "core/table.h"

namespace memfathom {

// Titles of columns are translated here, cells by whoever writes them.
inline std::string rendered(Table table, const Context& context) {
  table.rename_columns(
      [&](const std::string& title) { return translated(context.language, title); });
  switch (context.format) {
    case Format::kCsv: return table.csv();
    case Format::kMarkdown: return table.markdown();
    case Format::kTable:
    case Format::kJson:
    case Format::kOpenMetrics: break;
  }
  return table.text(context.colour, context.columns);
}

}  // namespace memfathom
