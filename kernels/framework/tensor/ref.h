// Ref: a counted pointer for objects of one thread; the count lives in the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/framework/tensor/recycled.h"

namespace memfathom {

// Base of reference-counted types. A session and all its tensors belong to one thread, so counting
// is not atomic. Each type T has a `void destroy(T*)` next to it that deletes, defined in a .cc:
// compilers that inline the delete warn about uses after free.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  std::uint32_t use_count() const { return ref_count_; }

  // Counted types are final, so that the size given back is the size taken.
  static void* operator new(std::size_t bytes) { return take_recycled(bytes); }
  static void operator delete(void* memory, std::size_t bytes) { give_recycled(memory, bytes); }

 private:
  template <typename T>
  friend class Ref;
  std::uint32_t ref_count_ = 0;
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) ++object_->ref_count_;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() {
    T* object = std::exchange(object_, nullptr);
    if (object != nullptr && --object->ref_count_ == 0) destroy(object);
  }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace memfathom
