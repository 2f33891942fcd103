#include "kernels/framework/tensor/recycled.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>

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

// What a thread took from the system at a time; the memory that is handed out lies behind it.
struct alignas(kStep) Chunk {
  Chunk* previous;
};

// Without a destructor, so that reaching them is an address and not a call, and so that no memory
// is needed to register one: the C library ends the program where that fails.
struct Lists {
  std::array<Unused*, kClasses> by_size;
  std::byte* begin;  // what is left of the newest chunk
  std::byte* end;
  Chunk* newest;
  std::size_t chunk;  // the size of the newest one
  std::size_t taken;
};

// A few words, which every loader has room for: also there reached without a call.
[[gnu::tls_model("initial-exec")]] constinit thread_local Lists lists{};

// Everything a thread has taken goes back when it ends; what the main one has, with the process.
class ThreadEnd {
 public:
  ThreadEnd() { works_ = pthread_key_create(&key_, give_back) == 0; }
  void expects(Chunk* newest) const {
    if (works_) pthread_setspecific(key_, newest);
  }

 private:
  static void give_back(void* newest) {
    lists = {};
    for (auto* chunk = static_cast<Chunk*>(newest); chunk != nullptr;) {
      Chunk* const previous = chunk->previous;
      ::operator delete (chunk, std::align_val_t{kStep});
      chunk = previous;
    }
  }

  pthread_key_t key_{};
  bool works_ = false;
};

const ThreadEnd kThreadEnd;

[[noreturn]] void refuse() {
  throw Error(ErrorKind::kInput,
              fmt::format("a replay of this job would hold more than {} of tensors and operations "
                          "at the same time; reduce frames, rows, modules or layers",
                          to_string(Bytes{kMost})));
}

void add_chunk() {
  const std::size_t size =
      lists.chunk == 0 ? kFirstChunk : std::min(lists.chunk * 2, kLargestChunk);
  if (lists.taken + size > static_cast<std::size_t>(kMost)) refuse();
  void* const memory = ::operator new (sizeof(Chunk) + size, std::align_val_t{kStep});
  lists.newest = new (memory) Chunk{lists.newest};
  kThreadEnd.expects(lists.newest);
  lists.begin = reinterpret_cast<std::byte*>(lists.newest + 1);
  lists.end = lists.begin + size;
  lists.chunk = size;
  lists.taken += size;
}

std::size_t class_of(std::size_t bytes) { return (bytes - 1) / kStep; }

void* take_new(std::size_t bytes) {
  if (static_cast<std::size_t>(lists.end - lists.begin) < bytes) add_chunk();
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
