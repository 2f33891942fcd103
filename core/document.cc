#include "core/document.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iostream>

#include "core/error.h"
#include "core/parse_toml.h"

namespace memfathom {
namespace {

std::string read_all(const std::string& path, const DocumentLimits& limits) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      throw Error(ErrorKind::kInput, fmt::format("{}: cannot be opened; check the path", path));
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string text;
  std::array<char, 65536> chunk;
  while (stream.read(chunk.data(), chunk.size()), stream.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > limits.max_file_bytes) break;  // the parser reports it
  }
  if (stream.bad() || (path != "-" && text.empty() && !stream.eof())) {
    throw Error(ErrorKind::kInput, fmt::format("{}: cannot be read; it must be a file", path));
  }
  return text;
}

}  // namespace

Node parse_document(std::string_view text, const std::string& file, const DocumentLimits& limits) {
  const std::string_view name = file;
  if (name.ends_with(".toml")) return parse_toml(text, file, 1, limits);
  const bool named_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool braced = start != std::string_view::npos && (text[start] == '{' || text[start] == '[');
  const bool is_json = name.ends_with(".json") || (!named_yaml && braced);
  return is_json ? parse_json(text, file, 1, limits) : parse_yaml(text, file, 1, limits);
}

Node load_document(const std::string& path, const DocumentLimits& limits) {
  return parse_document(read_all(path, limits), path == "-" ? "standard input" : path, limits);
}

}  // namespace memfathom
