#include "kernels/memory/trace/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace memfathom {

// The stack machine of pickle, on indices of values.
class PickleReader {
 public:
  using Index = Pickle::Index;
  using Kind = Pickle::Kind;

  PickleReader(std::string_view bytes, const std::string& name, Pickle& pickle)
      : bytes_(bytes), name_(name), pickle_(pickle) {}

  void read() {
    for (;;) {
      start_ = at_;
      const auto opcode = static_cast<unsigned char>(number(1));
      if (opcode == '.') break;
      if (!run_value(opcode) && !run_container(opcode) && !run_memo(opcode)) {
        refuse(fmt::format(
            "opcode {:#04x} is not allowed in a memory snapshot; only data is read, nothing is run",
            opcode));
      }
    }
    pickle_.root_ = pop();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kInput, fmt::format("{}: byte {}: {}", name_, start_, what));
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) refuse("the pickle is cut short");
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  std::uint64_t number(std::size_t count) {  // little endian, at most 8 bytes
    const std::string_view digits = take(count);
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;)
      value = value << 8U | static_cast<unsigned char>(digits[i]);
    return value;
  }

  Pickle::Value& make(Kind kind) {
    if (pickle_.values_.size() >= Pickle::kMaxValues)
      refuse(fmt::format("it has more than {} values", Pickle::kMaxValues));
    stack_.push_back(static_cast<Index>(pickle_.values_.size()));
    pickle_.values_.emplace_back().kind = kind;
    return pickle_.values_.back();
  }
  void make_integer(std::uint64_t value) {
    make(Kind::kInteger).integer = static_cast<std::int64_t>(value);
  }
  void make_text(std::uint64_t size) {
    const std::string_view text = take(size);
    make(Kind::kText).text = std::string(text);
  }

  Index pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
      refuse("a value is missing");
    const Index top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<Index> pop_to_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Index> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void extend(Kind kind, const std::vector<Index>& items) {
    if (stack_.empty()) refuse("a value is missing");
    Pickle::Value& target = pickle_.values_[stack_.back()];
    if (target.kind != kind) refuse("items are added to what is neither a list nor a dict");
    if (kind == Kind::kDict && items.size() % 2 != 0) refuse("a dict has a key without a value");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }
  void make_tuple(std::size_t count) {
    std::vector<Index> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    make(Kind::kList).items = std::move(items);
  }

  bool run_value(unsigned char opcode);
  bool run_container(unsigned char opcode);
  bool run_memo(unsigned char opcode);

  std::string_view bytes_;
  const std::string& name_;
  Pickle& pickle_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;
  std::vector<Index> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Index> memo_;
};

bool PickleReader::run_value(unsigned char opcode) {
  switch (opcode) {
    case 'N': make(Kind::kNone); return true;
    case 0x88: make(Kind::kBool).integer = 1; return true;
    case 0x89: make(Kind::kBool); return true;
    case 'K': make_integer(number(1)); return true;
    case 'M': make_integer(number(2)); return true;
    case 'J':
      make_integer(static_cast<std::uint64_t>(
          std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(number(4)))}));
      return true;
    case 0x8a: {  // LONG1: as many bytes as it needs, two's complement
      const std::size_t size = number(1);
      const std::string_view digits = take(size);
      if (size > 9 || (size == 9 && digits[8] != 0)) refuse("a number has more than 64 bits");
      std::uint64_t value = size > 0 && (digits[size - 1] & 0x80) != 0 ? ~std::uint64_t{0} : 0;
      for (std::size_t i = std::min<std::size_t>(size, 8); i-- > 0;)
        value = value << 8U | static_cast<unsigned char>(digits[i]);
      make_integer(value);
      return true;
    }
    case 'G': {  // big endian
      std::uint64_t bits = 0;
      for (const char digit : take(8)) bits = bits << 8U | static_cast<unsigned char>(digit);
      static_assert(sizeof(double) == sizeof bits);
      std::memcpy(&make(Kind::kReal).real, &bits, sizeof bits);
      return true;
    }
    case 0x8c: make_text(number(1)); return true;
    case 'X': make_text(number(4)); return true;
    case 0x8d: make_text(number(8)); return true;
    default: return false;
  }
}

bool PickleReader::run_container(unsigned char opcode) {
  switch (opcode) {
    case '}': make(Kind::kDict); return true;
    case ']':
    case ')': make(Kind::kList); return true;
    case '(': marks_.push_back(stack_.size()); return true;
    case 't': {
      std::vector<Index> items = pop_to_mark();
      make(Kind::kList).items = std::move(items);
      return true;
    }
    case 0x85: make_tuple(1); return true;
    case 0x86: make_tuple(2); return true;
    case 0x87: make_tuple(3); return true;
    case 'a': extend(Kind::kList, {pop()}); return true;
    case 'e': extend(Kind::kList, pop_to_mark()); return true;
    case 's': {
      const Index value = pop();
      const Index key = pop();
      extend(Kind::kDict, {key, value});
      return true;
    }
    case 'u': extend(Kind::kDict, pop_to_mark()); return true;
    default: return false;
  }
}

bool PickleReader::run_memo(unsigned char opcode) {
  const auto put = [&](std::uint64_t slot) {
    if (stack_.empty()) refuse("a value is missing");
    // Writers number their memo densely; anything else would only cost memory.
    if (slot > memo_.size()) refuse(fmt::format("memo {} is not the next one", slot));
    if (slot == memo_.size()) memo_.push_back(0);
    memo_[static_cast<std::size_t>(slot)] = stack_.back();
  };
  const auto get = [&](std::uint64_t slot) {
    if (slot >= memo_.size()) refuse(fmt::format("memo {} was never written", slot));
    stack_.push_back(memo_[static_cast<std::size_t>(slot)]);
  };
  switch (opcode) {
    case 0x80: take(1); return true;  // the protocol's number
    case 0x95: take(8); return true;  // the length of a frame
    case 0x94: put(memo_.size()); return true;
    case 'q': put(number(1)); return true;
    case 'r': put(number(4)); return true;
    case 'h': get(number(1)); return true;
    case 'j': get(number(4)); return true;
    default: return false;
  }
}

Pickle::Pickle(std::string_view bytes, const std::string& name) {
  PickleReader(bytes, name, *this).read();
}

std::vector<const Pickle::Value*> Pickle::list(const Value* value, std::size_t max) const {
  std::vector<const Value*> items;
  if (value == nullptr || value->kind != Kind::kList) return items;
  const std::size_t count = std::min(max, value->items.size());
  items.reserve(count);
  for (std::size_t i = 0; i < count; ++i) items.push_back(&values_[value->items[i]]);
  return items;
}

const Pickle::Value* Pickle::find(const Value* dict, std::string_view key) const {
  if (dict == nullptr || dict->kind != Kind::kDict) return nullptr;
  const std::size_t end = std::min(dict->items.size(), 2 * kMaxKeys);
  for (std::size_t i = 0; i + 1 < end; i += 2) {
    const Value& name = values_[dict->items[i]];
    if (name.kind == Kind::kText && name.text == key) return &values_[dict->items[i + 1]];
  }
  return nullptr;
}

}  // namespace memfathom
