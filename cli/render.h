// Renders tables in the requested format. Each command writes its own JSON.
#pragma once

#include <string>

#include "cli/command.h"
#include "core/table.h"

namespace memfathom {

inline std::string rendered(const Table& table, const Context& context) {
  switch (context.format) {
    case Format::kCsv: return table.csv();
    case Format::kMarkdown: return table.markdown();
    case Format::kTable:
    case Format::kJson: break;
  }
  return table.text(context.colour);
}

}  // namespace memfathom
