#include "profiler/visible_devices.h"

#include <algorithm>
#include <sstream>

namespace memfathom {
namespace {

std::string trimmed(const std::string& text) {
  constexpr const char* kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_device(const std::string& entry) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return true;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !entry.empty() && entry.size() < 6 && std::all_of(entry.begin(), entry.end(), is_digit);
}

}  // namespace

std::optional<std::vector<std::string>> visible_devices(const char* value) {
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> entries;
  std::istringstream words{std::string(value)};
  for (std::string word; std::getline(words, word, ',');) {
    std::string entry = trimmed(word);
    if (!is_device(entry)) break;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace memfathom
