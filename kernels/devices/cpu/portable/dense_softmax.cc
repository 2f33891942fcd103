#include "kernels/devices/cpu/dense_softmax.h"

namespace memfathom::cpu {

struct DenseSoftmax::Engine {};

DenseSoftmax::DenseSoftmax() = default;
DenseSoftmax::~DenseSoftmax() = default;

bool DenseSoftmax::run(const SoftmaxCall&) { return false; }

}  // namespace memfathom::cpu
