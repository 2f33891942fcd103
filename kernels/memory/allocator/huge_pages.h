// HugePages: an allocator that requests 2 MiB pages, for large vectors with random access.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace memfathom {

// With a million blocks (60 MB) in 4 KiB pages, TLB misses would dominate. Kernels without huge
// pages ignore the request.
template <class T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <class U>
  HugePages(const HugePages<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* const memory = ::operator new(bytes, alignment(bytes));
    if (bytes >= kPage) madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    ::operator delete(memory, alignment(count * sizeof(T)));
  }

  template <class U>
  bool operator==(const HugePages<U>&) const {
    return true;
  }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  static std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= kPage ? kPage : alignof(T)};
  }
};

}  // namespace memfathom
