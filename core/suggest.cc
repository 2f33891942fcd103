#include "core/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace memfathom {
namespace {

constexpr std::size_t kMaxNameLength =
    64;  // longer texts are not typos, and the distance is quadratic

std::string folded(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Edits (insert, delete, replace, swap neighbours) that turn `a` into `b`.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view given,
                                             std::span<const std::string_view> names) {
  if (given.empty() || given.size() > kMaxNameLength) return std::nullopt;
  const std::string wanted = folded(given);
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const std::string_view name : names) {
    if (name.size() > kMaxNameLength) continue;
    const std::size_t d = distance(wanted, folded(name));
    // A name with nothing in common with the given one is not suggested, even if both are short.
    if (d < best_distance && d < std::max(given.size(), name.size())) {
      best = name;
      best_distance = d;
    }
  }
  return best;
}

bool is_likely_typo(std::string_view given, std::string_view name) {
  constexpr std::size_t kShortest = 8;
  if (given == name || given.size() < kShortest || given.size() > kMaxNameLength) return false;
  if (given.size() > name.size() + 1 || name.size() > given.size() + 1) return false;
  return distance(folded(given), folded(name)) <= 1;
}

bool is_near_miss(std::string_view given, std::string_view name) {
  constexpr std::size_t kShortest = 4;
  constexpr std::size_t kLettersPerEdit = 5;
  if (given == name || given.size() > kMaxNameLength || name.size() > kMaxNameLength) return false;
  const std::size_t shorter = std::min(given.size(), name.size());
  if (shorter < kShortest) return false;
  const std::size_t allowed = std::max<std::size_t>(1, given.size() / kLettersPerEdit);
  return distance(folded(given), folded(name)) <= allowed;
}

std::string suggestion(std::string_view given, std::span<const std::string_view> names) {
  if (const auto near = nearest_name(given, names))
    return fmt::format("did you mean \"{}\"?", *near);
  return fmt::format("use one of {}", fmt::join(names, ", "));
}

}  // namespace memfathom
