#include "kernels/framework/layers/network.h"

#include "core/error.h"

namespace memfathom {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorKind::kInput,
              "training.mode is \"generate\", but this model does not generate; use \"inference\"");
}

}  // namespace

Tensor Network::prefill() { refuse(); }

Tensor Network::decode() { refuse(); }

}  // namespace memfathom
