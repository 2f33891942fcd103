// EnumNames: the names of an enum's values, both directions from one table.
//
//   enum class Lengths : std::uint8_t { kFixed, kVarying };
//   template <>
//   inline constexpr auto kEnumNames<Lengths> = std::to_array<EnumName<Lengths>>(
//       {{Lengths::kFixed, "fixed"}, {Lengths::kVarying, "varying"}});
//
//   enum_name(Lengths::kVarying);               // "varying"
//   enum_from_name<Lengths>("fixed");           // Lengths::kFixed
//   node.as_enum<Lengths>();                    // of a document, with a sentence for anything else
//
// Using a table that lacks a value, or has a value or a name twice, does not compile. The enum's
// values must count from 0. The order of the table is the order in which errors list the names.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace memfathom {

template <typename E>
struct EnumName {
  E value;
  std::string_view name;
};

// Specialised next to each enum that has names.
template <typename E>
inline constexpr std::nullptr_t kEnumNames = nullptr;

template <typename E>
concept NamedEnum =
    std::is_enum_v<E> && !std::is_same_v<decltype(kEnumNames<E>), const std::nullptr_t>;

namespace enum_detail {

// The compiler writes the enumerator's name, or a cast such as "(Lengths)2" for a number that has
// none.
template <auto Value>
constexpr bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const std::size_t start = text.find("Value = ");
  return start != std::string_view::npos && text[start + 8] != '(';
}

}  // namespace enum_detail

// Whether the table names every value of E once, and each by a name of its own.
template <NamedEnum E>
constexpr bool names_are_complete() {
  constexpr auto& kTable = kEnumNames<E>;
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name.empty() || static_cast<std::size_t>(kTable[i].value) >= kTable.size())
      return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (kTable[i].value == kTable[j].value || kTable[i].name == kTable[j].name) return false;
    }
  }
  return !enum_detail::is_enumerator<static_cast<E>(kTable.size())>();
}

template <NamedEnum E>
constexpr std::string_view enum_name(E value) {
  static_assert(names_are_complete<E>(), "the table does not name every value of the enum once");
  for (const EnumName<E>& entry : kEnumNames<E>) {
    if (entry.value == value) return entry.name;
  }
  return {};  // only for a number that is no value of the enum
}

template <NamedEnum E>
constexpr std::optional<E> enum_from_name(std::string_view name) {
  static_assert(names_are_complete<E>(), "the table does not name every value of the enum once");
  for (const EnumName<E>& entry : kEnumNames<E>) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

// Also by other names that callers may use; `enum_name` never answers with one of them.
template <NamedEnum E, std::size_t N>
constexpr std::optional<E> enum_from_name(std::string_view name,
                                          const std::array<EnumName<E>, N>& aliases) {
  for (const EnumName<E>& alias : aliases) {
    if (alias.name == name) return alias.value;
  }
  return enum_from_name<E>(name);
}

// The names alone, in the order of the table.
template <NamedEnum E>
inline constexpr auto kNamesOf = [] {
  std::array<std::string_view, kEnumNames<E>.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kEnumNames<E>[i].name;
  return names;
}();

}  // namespace memfathom
