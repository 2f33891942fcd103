// FlatGroup: parameters that a library keeps in one flat tensor, given memory and let go together.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/framework/layers/builder.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

struct FlatGroup {
  std::vector<Tensor> leaves;
  Tensor whole;  // all of them; without memory until gathered
  bool trainable = false;

  std::int64_t elements() const { return whole.elements(); }
  Storage& storage() const { return *whole.impl()->storage; }
  Component component() const { return storage().component(); }
  ModuleIndex module() const { return storage().module(); }
};

// The parameters, by what can lie in one tensor: same type, same module, learning or not. They must
// have been built deferred; afterwards they are views of the flat tensors, which `keeper` is told
// of.
std::vector<FlatGroup> flatten(Session& session, const std::vector<Tensor>& parameters,
                               StorageObserver* storage_observer);

// The part of `elements` that one of `count` ranks holds, with the padding that makes all parts
// equal.
constexpr std::int64_t share_of(std::int64_t elements, std::int64_t count) {
  return (elements + count - 1) / count;
}

// A tensor beside a group, on the device or the host, with the group's component and module.
Tensor make_companion_tensor(const FlatGroup& group, Session& session, std::int64_t elements,
                             DType dtype, Component component);

}  // namespace memfathom
