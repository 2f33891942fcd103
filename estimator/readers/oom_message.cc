#include "estimator/readers/oom_message.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/from_chars_real.h"

namespace memfathom {
namespace {

constexpr std::size_t kWindow = 4096;  // bytes of a message that are looked at

struct Wording {
  std::string_view begin;
  OomSource source;
};

// Of two that begin at the same place, the more specific one stands first.
constexpr std::array kWordings{
    Wording{"out of memory. Tried to allocate", OomSource::kPytorch},
    Wording{"out of memory, tried to allocate", OomSource::kPytorch},
    Wording{"Allocation on device", OomSource::kPytorch},
    Wording{"RESOURCE_EXHAUSTED: Out of memory", OomSource::kJax},
    Wording{"No available memory for the cache blocks", OomSource::kVllm},
    Wording{"KV cache is needed, which is larger than the available KV cache memory",
            OomSource::kVllm},
    Wording{"CUBLAS_STATUS_ALLOC_FAILED", OomSource::kCublas},
    Wording{"CUDNN_STATUS_ALLOC_FAILED", OomSource::kCudnn},
    Wording{"Cuda failure 2 'out of memory'", OomSource::kNccl},
    Wording{"Cuda failure 'out of memory'", OomSource::kNccl},
    Wording{"CUDA error: out of memory", OomSource::kCuda},
    Wording{"cuda runtime error (2) : out of memory", OomSource::kCuda},
    Wording{"cudaMalloc failed: out of memory", OomSource::kCuda},
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_number(char c) { return (c >= '0' && c <= '9') || c == '.'; }

// Logs wrap and prefix lines: runs of white space become one space.
std::string joined(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (!is_space(c)) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  return result;
}

std::optional<double> unit_of(std::string_view word) {
  while (!word.empty() && (word.back() == '.' || word.back() == ',' || word.back() == ';' ||
                           word.back() == ')' || word.back() == ']'))
    word.remove_suffix(1);
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array kUnits{
      Unit{"bytes", 1},    Unit{"B", 1},        Unit{"KiB", 0x1p10},
      Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30}, Unit{"TiB", 0x1p40},
      Unit{"KB", 1e3},     Unit{"MB", 1e6},     Unit{"GB", 1e9},
  };
  for (const Unit& unit : kUnits) {
    if (unit.name == word) return unit.bytes;
  }
  return std::nullopt;
}

// "23.69 GiB", "8589934592 bytes" or "8589934592bytes" at the start of a text.
std::optional<Bytes> size_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_number(text[end])) ++end;
  double number = 0;
  const auto [stop, failure] = from_chars_real(text.data(), text.data() + end, number);
  if (failure != std::errc{} || end == 0 || stop != text.data() + end) return std::nullopt;
  std::string_view rest = text.substr(end);
  if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const std::optional<double> unit = unit_of(rest.substr(0, rest.find(' ')));
  if (!unit) return std::nullopt;
  const double bytes = std::round(number * *unit);
  if (!(bytes >= 0 && bytes < 0x1p60)) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(bytes)};
}

std::optional<Bytes> size_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  return at == std::string_view::npos ? std::nullopt : size_at(text.substr(at + words.size()));
}

// The size whose number and unit stand right before `words`.
std::optional<Bytes> size_before(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::size_t unit = text.substr(0, at).rfind(' ');
  if (unit == std::string_view::npos || unit == 0) return std::nullopt;
  std::size_t number = unit;
  while (number > 0 && is_number(text[number - 1])) --number;
  return size_at(text.substr(number, at - number));
}

std::optional<Bytes> either(std::optional<Bytes> first, std::optional<Bytes> second) {
  return first ? first : second;
}

// "Process 4711 has 10.20 GiB memory in use", once for each.
std::vector<Bytes> listed_processes(std::string_view text) {
  constexpr std::string_view kHas = " has ";
  std::vector<Bytes> listed;
  for (std::size_t at = text.find("Process "); at != std::string_view::npos;
       at = text.find("Process ", at + 1)) {
    const std::size_t has = text.find(kHas, at);
    if (has == std::string_view::npos) break;
    if (const std::optional<Bytes> size = size_at(text.substr(has + kHas.size())))
      listed.push_back(*size);
  }
  return listed;
}

// In a container the driver knows a process by another number, so PyTorch lists its own process as
// one of the others. It is among them if they and it would hold more than the GPU has in use; it
// is the one that holds least beyond what its allocator reserves.
void tell_processes_apart(std::vector<Bytes> listed, OomMessage& message) {
  if (listed.empty()) return;
  Bytes sum;
  for (const Bytes size : listed) sum += size;
  const Bytes in_use = message.capacity.value_or(Bytes{}) - message.free.value_or(Bytes{});
  const bool is_listed = !message.in_process && message.capacity && message.reserved &&
                         sum + *message.reserved > in_use;
  std::sort(listed.begin(), listed.end());
  const auto own =
      is_listed ? std::lower_bound(listed.begin(), listed.end(), *message.reserved) : listed.end();
  if (own != listed.end()) {
    message.in_process = *own;
    sum -= *own;
  }
  if (own == listed.end() || listed.size() > 1) message.in_others = sum;
}

std::optional<std::int64_t> gpu_of(std::string_view text) {
  const std::size_t at = text.find("GPU ");
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const begin = text.data() + at + 4;
  const auto [stop, failure] = std::from_chars(begin, text.data() + text.size(), number);
  if (failure != std::errc{} || number < 0 || number > 4096) return std::nullopt;
  return number;
}

std::optional<Bytes> difference(std::optional<Bytes> a, std::optional<Bytes> b) {
  return a && b && *a >= *b ? std::optional(*a - *b) : std::nullopt;
}

void read_pytorch(std::string_view text, OomMessage& message) {
  message.gpu = gpu_of(text);
  message.tried =
      either(size_after(text, "Tried to allocate "), size_after(text, "tried to allocate "));
  // "capacty" is how PyTorch 2.1 to 2.3 spell it.
  message.capacity =
      either(either(size_after(text, "total capacity of "), size_after(text, "total capacty of ")),
             size_before(text, " total capacity"));
  message.free = either(size_before(text, " is free"), size_before(text, " free"));
  message.in_process = size_after(text, "this process has ");
  message.allocated =
      either(size_after(text, "Of the allocated memory "), size_before(text, " already allocated"));
  message.unallocated = size_before(text, " is reserved by PyTorch but unallocated");
  message.reserved =
      either(size_before(text, " reserved in total by PyTorch"), size_before(text, " cached"));
  if (!message.reserved && message.allocated && message.unallocated)
    message.reserved = *message.allocated + *message.unallocated;
  if (!message.unallocated) message.unallocated = difference(message.reserved, message.allocated);
  tell_processes_apart(listed_processes(text), message);
  message.outside = difference(message.in_process, message.reserved);
}

void read_figures(std::string_view text, OomMessage& message) {
  switch (message.source) {
    case OomSource::kPytorch: read_pytorch(text, message); break;
    case OomSource::kJax:
      message.tried =
          either(size_after(text, "trying to allocate "), size_after(text, "allocating "));
      break;
    case OomSource::kVllm: message.free = size_after(text, "available KV cache memory ("); break;
    case OomSource::kCuda: message.tried = size_after(text, "allocating "); break;
    case OomSource::kCublas:
    case OomSource::kCudnn:
    case OomSource::kNccl: break;
  }
}

}  // namespace

std::optional<OomMessage> find_oom_message(std::string_view text) {
  std::optional<OomMessage> found;
  std::size_t last = 0;
  std::int64_t count = 0;
  for (const Wording& wording : kWordings) {
    for (std::size_t at = text.find(wording.begin); at != std::string_view::npos;
         at = text.find(wording.begin, at + wording.begin.size())) {
      ++count;
      if (found && at < last) continue;
      found = OomMessage{};
      found->source = wording.source;
      last = at;
    }
  }
  if (!found) return std::nullopt;
  found->messages = count;
  found->line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(last), '\n');
  // vLLM names the size it needs before the words that mark its message.
  constexpr std::size_t kBefore = 64;
  const std::size_t begin =
      found->source == OomSource::kVllm && last > kBefore ? last - kBefore : last;
  const std::string message = joined(text.substr(begin, kWindow));
  read_figures(message, *found);
  if (found->source == OomSource::kVllm) found->tried = size_before(message, " KV cache is needed");
  return found;
}

}  // namespace memfathom
