// Pickle: a bounded reader of the pickle subset that PyTorch's memory snapshots consist of.
//
// Values are dicts, lists, tuples, texts, numbers, booleans and None. Opcodes that import or call
// anything (GLOBAL, REDUCE, BUILD, ...) are refused, so nothing of the file is ever executed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memfathom {

class Pickle {
 public:
  enum class Kind : std::uint8_t { kNone, kBool, kInteger, kReal, kText, kList, kDict };
  using Index = std::uint32_t;
  struct Value {
    Kind kind = Kind::kNone;
    std::int64_t integer = 0;  // of integers beyond 2^63, such as addresses, the same 64 bits
    double real = 0;
    std::string text;
    std::vector<Index> items;  // of a dict keys and values in turn; tuples are lists
  };

  static constexpr std::size_t kMaxValues = 50'000'000;
  static constexpr std::size_t kMaxKeys = 64;

  // Throws Error(kInput) with `name` and the position of the refused byte.
  Pickle(std::string_view bytes, const std::string& name);

  const Value& root() const { return values_[root_]; }
  // The first `max` elements of a list; none if `value` is null or no list. Values may refer to
  // each other in circles, and to the same one many times: follow known keys only.
  std::vector<const Value*> list(const Value* value, std::size_t max = kMaxValues) const;
  // Of the first kMaxKeys keys of a dict; null if there is none.
  const Value* find(const Value* dict, std::string_view key) const;

 private:
  friend class PickleReader;
  std::vector<Value> values_;
  Index root_ = 0;
};

}  // namespace memfathom
