// csv_line: the fields of one line of CSV (RFC 4180, without line breaks inside quotes).
#pragma once

#include <string>
#include <vector>

namespace memfathom {

// Quotes may enclose commas, and two quotes encode one.
std::vector<std::string> csv_fields(const std::string& line);

}  // namespace memfathom
