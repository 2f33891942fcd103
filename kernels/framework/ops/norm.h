// Norms: layer, RMS (fused and in elementary operations), group, batch and instance norm.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// Over the last dimension.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
// torch.nn.RMSNorm: one kernel if weight and input have the same type, else elementary operations.
// Versions without that kernel always use the elementary operations of rms_norm_python.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6);
// RMS norm as in Hugging Face models: fp32 inside, then multiplied by the weight in the input's
// type.
Tensor rms_norm_python(const Tensor& x, const Tensor& weight, double eps = 1e-6);

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias,
                  double eps = 1e-5);

struct BatchNormState {
  Tensor weight, bias;               // may be undefined
  Tensor running_mean, running_var;  // may be undefined (instance norm)
};

// Training uses the batch's statistics and updates the running ones; evaluation uses the running
// ones.
Tensor batch_norm(const Tensor& x, const BatchNormState& state, bool training, double eps = 1e-5);
// Instance norm: batch norm over [1, N*C, ...] with the weights repeated N times.
Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);

}  // namespace memfathom
