#include "kernels/memory/trace/variation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;   // of a batch or a length
constexpr std::int64_t kMaxValue = std::int64_t{1} << 50;  // bytes or elements
constexpr std::int64_t kMaxCoefficient = std::int64_t{1} << 50;
constexpr std::int64_t kMaxExponent = 2;
constexpr std::size_t kMaxTerms = 9;

std::string spoken(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

[[noreturn]] void refuse_size(const std::string& file, const std::string& name, std::int64_t asked,
                              const TraceSizes& recorded) {
  const auto known = recorded.find(name);
  const std::string at =
      known == recorded.end() ? "" : fmt::format(" ({} {})", spoken(name), known->second);
  throw Error(ErrorKind::kInput,
              fmt::format("{}: the step was recorded at one size only{}; {} {} cannot be derived "
                          "from it. Record it with memfathom capture --vary {} -o {} train.py",
                          file, at, spoken(name), asked, name, file));
}

// "8 and 16", of one of the sizes at which the step was recorded.
std::string recorded_at(const Node& varies, std::size_t which) {
  std::vector<std::int64_t> values;
  for (const Node& node : varies.at("recorded").items()) {
    const std::vector<std::int64_t> sizes = node.as_ints(1, kMaxSize);
    if (which >= sizes.size()) node.refuse("it must have a number for each name");
    if (std::find(values.begin(), values.end(), sizes[which]) == values.end())
      values.push_back(sizes[which]);
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace

Variation::Variation(const Node& header, const std::string& name, const TraceSizes& asked) {
  if (const Node* sizes = header.find("sizes")) {
    for (const Node& entry : sizes->entries())
      sizes_[std::string(entry.key())] = entry.as_int(1, kMaxSize);
  }
  const Node* varies = header.find("varies");
  if (varies != nullptr) {
    for (const Node& each : varies->at("names").items()) {
      names_.push_back(each.as_string());
      least_[names_.back()] = varies->at("from").at(names_.back()).as_int(1, kMaxSize);
      if (!sizes_.contains(names_.back())) each.refuse("it must be one of the header's sizes");
    }
  }
  const bool names_sizes = !sizes_.empty();
  bool differs = false;
  for (const auto& [key, value] : asked) {
    const auto known = sizes_.find(key);
    if (known != sizes_.end() && known->second == value) continue;
    if (!names_sizes) {
      unchecked_.push_back(
          fmt::format("the recording does not say its {}; it is taken to be the job's, {}",
                      spoken(key), value));
      sizes_[key] = value;
      continue;
    }
    if (std::find(names_.begin(), names_.end(), key) == names_.end())
      refuse_size(name, key, value, sizes_);
    const std::int64_t least = least_.at(key);
    if (value < least || value > kMaxSize) {
      throw Error(ErrorKind::kInput, fmt::format("{}: {} is {}; the recordings hold from {} to {}",
                                                 name, spoken(key), value, least, kMaxSize));
    }
    sizes_[key] = value;
    differs = true;
  }
  if (differs && varies != nullptr) read_terms(*varies, asked);
}

void Variation::read_terms(const Node& varies, const TraceSizes& asked) {
  const std::vector<Node>& terms = varies.at("terms").items();
  if (terms.empty() || terms.size() > kMaxTerms)
    varies.at("terms").refuse(fmt::format("it must have 1 to {} terms", kMaxTerms));
  for (const Node& term : terms) {
    const std::vector<std::int64_t> exponents = term.as_ints(0, kMaxExponent);
    if (exponents.size() != names_.size()) term.refuse("it must have an exponent for each name");
    __int128 power = 1;
    for (std::size_t i = 0; i < exponents.size(); ++i) {
      for (std::int64_t times = 0; times < exponents[i]; ++times) power *= sizes_.at(names_[i]);
    }
    powers_.push_back(power);
  }
  const Node& checked = varies.at("checked");
  const double recorded = checked.at("recorded_peak_bytes").as_number(1);
  const double error = checked.at("interpolated_peak_bytes").as_number(0) / recorded - 1;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (asked.contains(names_[i]))
      parts.push_back(fmt::format("{} {} from recordings at {}", spoken(names_[i]),
                                  sizes_.at(names_[i]), recorded_at(varies, i)));
  }
  const std::vector<std::int64_t> at = checked.at("at").as_ints(1, kMaxSize);
  sentence_ = fmt::format(
      "allocations are interpolated: {}; a fresh recording at {} differed by {:+.2f} % at its peak",
      fmt::join(parts, ", "), fmt::join(at, " and "), 100 * error);
}

std::optional<std::int64_t> Variation::value(std::span<const std::int64_t> coefficients) const {
  if (coefficients.size() != powers_.size()) return std::nullopt;
  __int128 sum = 0;
  for (std::size_t i = 0; i < powers_.size(); ++i) {
    if (std::abs(coefficients[i]) > kMaxCoefficient) return std::nullopt;
    sum += powers_[i] * coefficients[i];
  }
  if (sum < 0 || sum > kMaxValue) return std::nullopt;
  return static_cast<std::int64_t>(sum);
}

std::optional<std::string> Variation::apply(nlohmann::json& event) const {
  const nlohmann::json varying = event.at("vary");
  if (!varying.is_object()) return "\"vary\" is not an object";
  for (const auto& [pointer, coefficients] : varying.items()) {
    std::vector<std::int64_t> numbers;
    for (const nlohmann::json& each : coefficients) {
      if (!each.is_number_integer())
        return fmt::format("\"vary\" of {} is not a list of numbers", pointer);
      numbers.push_back(each.get<std::int64_t>());
    }
    const std::optional<std::int64_t> number = value(numbers);
    if (!number)
      return fmt::format("\"vary\" of {} is not a valid size at the requested sizes", pointer);
    try {
      nlohmann::json& place = event.at(nlohmann::json::json_pointer(pointer));
      if (!place.is_number_integer())
        return fmt::format("\"vary\" names {}, which is not a number", pointer);
      place = *number;
    } catch (const nlohmann::json::exception&) {
      return fmt::format("\"vary\" names {}, which the event does not have", pointer);
    }
  }
  return std::nullopt;
}

}  // namespace memfathom
