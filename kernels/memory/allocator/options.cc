#include "kernels/memory/allocator/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace memfathom {

namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::int64_t kLargeBufferMebibytes = 20;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kInput, fmt::format("allocator options: {}", what));
}

// Tokens: names, numbers, and each of : , [ ]. Spaces are dropped, as in PyTorch.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  bool open = false;  // the last token is an unfinished word
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n') continue;
    if (c == ':' || c == ',' || c == '[' || c == ']') {
      tokens.emplace_back(1, c);
      open = false;
    } else if (open) {
      tokens.back().push_back(c);
    } else {
      tokens.emplace_back(1, c);
      open = true;
    }
  }
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(tokens_of(text)) {}

  AllocatorOptions parse() {
    AllocatorOptions options;
    while (at_ < tokens_.size()) {
      const std::string key = take("an option's name");
      expect(":");
      read_option(key, options);
      if (at_ < tokens_.size()) expect(",");
    }
    return options;
  }

 private:
  const std::string* peek() const { return at_ < tokens_.size() ? &tokens_[at_] : nullptr; }

  std::string take(std::string_view what) {
    if (at_ >= tokens_.size()) refuse(fmt::format("{} is missing at the end", what));
    return tokens_[at_++];
  }

  void expect(std::string_view token) {
    const std::string found = take(fmt::format("\"{}\"", token));
    if (found != token) refuse(fmt::format("expected \"{}\", found \"{}\"", token, found));
  }

  std::int64_t number(std::string_view key) {
    const std::string text = take(fmt::format("the value of {}", key));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) {
      refuse(fmt::format("{} is \"{}\"; it must be a whole number", key, text));
    }
    return value;
  }

  bool boolean(std::string_view key) {
    const std::string text = take(fmt::format("the value of {}", key));
    if (text == "True") return true;
    if (text == "False") return false;
    refuse(fmt::format("{} is \"{}\"; it must be True or False", key, text));
  }

  // A size in MiB above 20; larger than any memory means unlimited.
  Bytes mebibytes(std::string_view key) {
    const std::int64_t value = number(key);
    if (value <= kLargeBufferMebibytes) {
      refuse(fmt::format("{} is {}; it must be more than {}", key, value, kLargeBufferMebibytes));
    }
    return value >= AllocatorOptions::kUnlimited.count() / kMebibyte ? AllocatorOptions::kUnlimited
                                                                     : Bytes{value * kMebibyte};
  }

  std::int64_t divisions(bool zero_allowed) {
    const std::int64_t value = number("roundup_power2_divisions");
    if (value == 0 ? !zero_allowed : !std::has_single_bit(static_cast<std::uint64_t>(value))) {
      refuse(fmt::format("roundup_power2_divisions has {}; divisions must be a power of two{}",
                         value, zero_allowed ? " or 0" : ""));
    }
    return value;
  }

  // "[256:1,512:2,>:4]": one division from 256 MiB, two from 512, four above the last. The first
  // entry also applies to all smaller sizes.
  void read_division_list(AllocatorOptions& options) {
    auto& table = options.roundup_power2_divisions;
    expect("[");
    bool first = true;
    std::size_t last = 0;
    while (peek() != nullptr && *peek() != "]") {
      if (*peek() == ">") {
        take(">");
        expect(":");
        std::fill(table.begin() + static_cast<std::ptrdiff_t>(last), table.end(), divisions(true));
      } else {
        const std::int64_t from = number("an interval of roundup_power2_divisions");
        if (from == 0 || !std::has_single_bit(static_cast<std::uint64_t>(from))) {
          refuse(fmt::format(
              "roundup_power2_divisions has the interval {}; it must be a power of two", from));
        }
        expect(":");
        const std::int64_t value = divisions(true);
        const auto interval = std::min<std::size_t>(
            static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(from))),
            table.size() - 1);
        if (first)
          std::fill(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(interval), value);
        table[interval] = value;
        first = false;
        last = interval;
      }
      if (peek() != nullptr && *peek() != "]") expect(",");
    }
    expect("]");
  }

  void read_option(const std::string& key, AllocatorOptions& options) {
    if (key == "max_split_size_mb") {
      options.max_split_size = mebibytes(key);
    } else if (key == "max_non_split_rounding_mb") {
      options.max_non_split_rounding = mebibytes(key);
    } else if (key == "expandable_segments") {
      options.expandable_segments = boolean(key);
    } else if (key == "roundup_power2_divisions") {
      if (peek() != nullptr && *peek() == "[") {
        read_division_list(options);
      } else {
        options.roundup_power2_divisions.fill(divisions(false));
      }
    } else if (key == "backend") {
      if (const std::string backend = take("the value of backend"); backend != "native") {
        refuse(fmt::format("backend:{} is not modelled; only the native backend is", backend));
      }
    } else if (key == "release_lock_on_cudamalloc" || key == "pinned_use_cuda_host_register" ||
               key == "pinned_use_background_threads") {
      boolean(key);  // locks and host memory: no effect on device memory
    } else if (key == "pinned_num_register_threads") {
      number(key);
    } else if (key == "garbage_collection_threshold") {
      refuse("garbage_collection_threshold is not modelled; leave it out");
    } else {
      refuse(fmt::format("\"{}\" is not an option this program models; leave it out", key));
    }
  }

  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
};

}  // namespace

AllocatorOptions parse_allocator_options(std::string_view text) { return Parser(text).parse(); }

}  // namespace memfathom
