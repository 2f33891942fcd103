// SmallVector: a growable array that stores its first N elements in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace memfathom {

template <typename T, std::size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      clear();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { clear(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }

  template <typename... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) grow();
    T* made = new (data() + size_) T(std::forward<Args>(args)...);
    ++size_;
    return *made;
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  void resize(std::size_t size) {
    while (size_ < size) emplace_back();
    while (size_ > size) data()[--size_].~T();
  }
  // Destroys in order: the order of frees affects the allocator.
  void clear() {
    for (T& element : *this) element.~T();
    size_ = 0;
    if (heap_ != nullptr) {
      std::allocator<T>().deallocate(heap_, capacity_);
      heap_ = nullptr;
      capacity_ = N;
    }
  }

 private:
  T* data() { return heap_ != nullptr ? heap_ : std::launder(reinterpret_cast<T*>(place_)); }
  const T* data() const {
    return heap_ != nullptr ? heap_ : std::launder(reinterpret_cast<const T*>(place_));
  }

  void grow() {
    const std::uint32_t capacity = capacity_ * 2;
    T* heap = std::allocator<T>().allocate(capacity);
    std::uninitialized_move(begin(), end(), heap);
    std::destroy(begin(), end());
    if (heap_ != nullptr) std::allocator<T>().deallocate(heap_, capacity_);
    heap_ = heap;
    capacity_ = capacity;
  }
  void take(SmallVector& other) {
    if (other.heap_ != nullptr) {
      heap_ = std::exchange(other.heap_, nullptr);
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, std::uint32_t{N});
      return;
    }
    std::uninitialized_move(other.begin(), other.end(), data());
    size_ = other.size_;
    other.clear();
  }

  T* heap_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  alignas(T) std::byte place_[N * sizeof(T)];
};

}  // namespace memfathom
