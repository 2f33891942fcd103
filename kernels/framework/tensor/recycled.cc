#include "kernels/framework/tensor/recycled.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "core/bytes.h"
#include "core/error.h"

namespace memfathom {

// AddressSanitizer sees uses after a free only if the memory really is freed.
#ifdef __SANITIZE_ADDRESS__

void* take_recycled(std::size_t bytes) { return ::operator new(bytes); }
void give_recycled(void* memory, std::size_t) noexcept { ::operator delete(memory); }

#else

namespace {

constexpr std::size_t kStep = 64;  // sizes are rounded up to whole cache lines
constexpr std::size_t kClasses = 8;
constexpr std::size_t kFirstChunk = std::size_t{64} << 10;
constexpr std::size_t kLargestChunk = std::size_t{1} << 20;
constexpr std::int64_t kMost = std::int64_t{3} << 30;  // the largest models take less than 1 GiB

struct Unused {
  Unused* next;
};

// Without a destructor, so that reaching them is an address and not a call.
struct Lists {
  std::array<Unused*, kClasses> by_size;
  std::byte* begin;  // what is left of the newest chunk
  std::byte* end;
};

// Ten words, which every loader has room for: also there reached without a call.
[[gnu::tls_model("initial-exec")]] constinit thread_local Lists lists{};

// Everything a thread has taken goes back when it ends.
class Chunks {
 public:
  void add() {
    taken_ += size_;
    if (taken_ > static_cast<std::size_t>(kMost)) refuse();
    chunks_.emplace_back(new std::byte[size_]);  // not zeroed, unlike make_unique's
    lists.begin = chunks_.back().get();
    lists.end = lists.begin + size_;
    size_ = std::min(size_ * 2, kLargestChunk);
  }

 private:
  [[noreturn]] void refuse() {
    taken_ -= size_;
    throw Error(
        ErrorKind::kInput,
        fmt::format("a replay of this job would hold more than {} of tensors and operations "
                    "at once; ask for fewer frames, rows, modules or layers",
                    to_string(Bytes{kMost})));
  }

  std::size_t size_ = kFirstChunk;
  std::size_t taken_ = 0;
  std::vector<std::unique_ptr<std::byte[]> > chunks_;
};

thread_local Chunks chunks;

std::size_t class_of(std::size_t bytes) { return (bytes - 1) / kStep; }

void* take_new(std::size_t bytes) {
  if (static_cast<std::size_t>(lists.end - lists.begin) < bytes) chunks.add();
  std::byte* const memory = lists.begin;
  lists.begin += bytes;
  return memory;
}

}  // namespace

void* take_recycled(std::size_t bytes) {
  const std::size_t at = class_of(bytes);
  if (at >= kClasses) return ::operator new(bytes);
  Unused*& first = lists.by_size[at];
  if (first == nullptr) return take_new((at + 1) * kStep);
  void* const memory = first;
  first = first->next;
  return memory;
}

void give_recycled(void* memory, std::size_t bytes) noexcept {
  const std::size_t at = class_of(bytes);
  if (at >= kClasses) {
    ::operator delete(memory);
    return;
  }
  lists.by_size[at] = new (memory) Unused{lists.by_size[at]};
}

#endif

}  // namespace memfathom
