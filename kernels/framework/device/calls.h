// Calls: the computations a device can run. Operations allocate; a device only fills buffers.
//
// Unless stated otherwise, arithmetic is fp32 for 16-bit and fp32 operands and fp64 for fp64
// operands. Complex operands are supported by kCopy, kFill, kAdd, kMul, kMulConjugate, kMulScalar,
// gemm and fft.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/workspace.h"
#include "kernels/framework/device/operand.h"

namespace memfathom {

// out = f(a, b, c; s0, s1, s2, s3), element by element; inputs are broadcast to `out` by their
// strides. `g` in the comments is the incoming gradient, x the forward input, y the forward output.
enum class Elementwise : std::uint8_t {
  kFill,               // s0
  kCopy,               // a, converted to out's type (complex to real keeps the real part)
  kAdd,                // a + s0 * b
  kAddScalar,          // a + s0
  kMul,                // a * b
  kMulConjugate,       // a * conj(b)
  kMulScalar,          // a * s0
  kDiv,                // a / b
  kRealOverScalar,     // a / s0
  kNeg,                // -a
  kPow,                // a ^ s0
  kPowBackward,        // a=g, b=x: g * s0 * x ^ (s0 - 1)
  kExp,                // exp a
  kLog,                // log a
  kSqrt,               // sqrt a
  kRsqrt,              // 1 / sqrt a
  kRsqrtBackward,      // a=g, b=y: -0.5 * g * y^3
  kSin,                // sin a
  kCos,                // cos a
  kTanh,               // tanh a
  kTanhBackward,       // a=g, b=y: g * (1 - y^2)
  kSigmoid,            // 1 / (1 + exp -a)
  kSigmoidBackward,    // a=g, b=y: g * y * (1 - y)
  kRelu,               // max(a, 0)
  kThresholdBackward,  // a=g, b=y: y > 0 ? g : 0
  kGelu,               // exact GELU
  kGeluBackward,       // a=g, b=x
  kGeluTanh,           // tanh form
  kGeluTanhBackward,   // a=g, b=x
  kSilu,               // a * sigmoid a
  kSiluBackward,       // a=g, b=x
  kMish,               // a * tanh(softplus a)
  kMishBackward,       // a=g, b=x
  kLeakyRelu,          // a > 0 ? a : s0 * a
  kLeakyReluBackward,  // a=g, b=x
  kElu,          // s1 * (a > 0 ? a : s0 * (exp a - 1)): alpha s0, scale s1 (SELU: its constants)
  kEluBackward,  // a=g, b=x, or with s2 = 1 the result; s0, s1
  kSoftplus,     // log(1 + exp(s0 a)) / s0, a where s0 a > s1
  kSoftplusBackward,       // a=g, b=x
  kHardtanh,               // clamp(a, s0, s1): relu6 is (0, 6)
  kHardtanhBackward,       // a=g, b=x
  kHardswish,              // a * relu6(a + 3) / 6
  kHardswishBackward,      // a=g, b=x
  kPrelu,                  // a=x, b=weight: x > 0 ? x : weight * x
  kPreluBackwardInput,     // a=g, b=x, c=weight
  kPreluBackwardWeight,    // a=g, b=x: x > 0 ? 0 : g * x (summed afterwards)
  kMaskedScale,            // a=g, b=mask (bool): g * mask * s0
  kWhere,                  // a=condition (bool): a ? b : c
  kNotEqualScalar,         // a != s0 (bool out)
  kMseBackward,            // a=g (scalar, broadcast), b=x, c=target: g * 2 (x - target) * s0
  kSquaredDifference,      // (a - b)^2
  kAbsDifference,          // |a - b|
  kL1Backward,             // a=g, b=x, c=target: g * sign(x - target) * s0
  kAbs,                    // |a|
  kSign,                   // -1, 0 or 1
  kSmoothL1,               // a=x, b=target, beta s0
  kSmoothL1Backward,       // a=g, b=x, c=target: s0 scale, s1 beta
  kBceWithLogits,          // a=x, b=target: (1 - t) x + log(1 + exp -x), stable
  kBceWithLogitsBackward,  // a=g, b=x, c=target: g (sigmoid x - t) * s0
  kBce,                    // a=x (probability), b=target; logarithms not below -100
  kBceBackward,            // a=g, b=x, c=target: g (x - t) / max((1 - x) x, 1e-12) * s0
};

struct ElementwiseCall {
  Elementwise op = Elementwise::kCopy;
  Operand out;
  Operand a, b, c;
  std::array<double, 4> scalars{};
};

enum class Reduction : std::uint8_t { kSum, kMean, kMax };

// `out` has the rank of `in`, with extent 1 in reduced dimensions. Accumulates in fp32 (fp64 for
// fp64).
struct ReduceCall {
  Reduction op = Reduction::kSum;
  Operand out;
  Operand in;
};

enum class Softmax : std::uint8_t { kSoftmax, kLogSoftmax };

// Over dimension `dim`. Forward: in -> out. Backward: in = gradient, y = forward's output -> out.
struct SoftmaxCall {
  Softmax op = Softmax::kSoftmax;
  bool backward = false;
  int dim = -1;
  Operand out;
  Operand in;
  Operand y;
};

enum class Norm : std::uint8_t { kLayer, kRms, kGroup, kBatch };

// kLayer, kRms: over the last dimension (rows x features). kGroup: x [N, C, ...], `groups` groups
// of channels. kBatch: x [N, C, ...], statistics per channel; in training they are computed and the
// running ones (if present) updated with `momentum`, in evaluation the running ones are used. mean
// and rstd are fp32: per row, per (N, group), per channel.
struct NormCall {
  Norm op = Norm::kLayer;
  bool backward = false;
  bool training = true;
  std::int64_t groups = 1;
  double eps = 1e-5;
  double momentum = 0.1;
  Operand x, weight, bias;  // weight and bias may be absent
  Operand y, mean, rstd;    // forward: written. backward: mean and rstd read. kRms has no mean
  Operand running_mean, running_var;
  Operand dy, dx, dweight, dbias;  // backward; each output may be absent
};

// Negative log likelihood, mean reduction: log-probabilities [N, C] or [N, C, spatial...], int64
// targets [N] or [N, spatial...]. Targets equal to `ignore_index` are skipped; loss and
// total_weight are scalars.
struct NllCall {
  bool backward = false;
  std::int64_t ignore_index = -100;
  Operand log_probabilities, target;
  Operand loss, total_weight;     // forward: written
  Operand grad_loss, grad_input;  // backward: scalar in, tensor added to
};

// y = x * mask / (1 - p), mask bernoulli(1 - p) from a counter-based generator: the same seed and
// offset give the same mask on every device.
struct DropoutCall {
  double p = 0;
  std::uint64_t seed = 0, offset = 0;
  Operand x, y, mask;
};

// out = alpha * a.b (+ bias broadcast over rows) (+ beta * out). a [.., m, k], b [.., k, n], out
// [.., m, n] with equal batch dimensions (rank 2 or 3); any operand may be transposed by its
// strides.
struct GemmCall {
  Operand out, a, b, bias;
  double alpha = 1, beta = 0;
  bool conjugate_a = false, conjugate_b = false;  // of complex factors
};

// `query.kind` selects whether y, dx or dw is written. x has shape NCHW; its strides define the
// layout.
struct ConvolutionCall {
  ConvolutionQuery query;
  Operand x, w, y;     // forward: y = conv(x, w); kAdd adds the bias afterwards
  Operand dy, dx, dw;  // gradients
  Operand workspace;   // uint8, of the size the device requested; may be absent
};

enum class Pool : std::uint8_t { kMax, kAverage, kAdaptiveAverage };

struct PoolCall {
  Pool op = Pool::kMax;
  bool backward = false;
  Shape kernel, stride, padding;  // spatial; unused by kAdaptiveAverage
  bool count_include_pad = true;
  Operand x, y, indices;  // kMax: indices int64 into the flattened spatial extent
  Operand dy, dx;         // backward: dx is fully written
};

enum class Upsample : std::uint8_t { kNearest, kBilinear };

struct UpsampleCall {
  Upsample op = Upsample::kNearest;
  bool backward = false;
  Operand in, out;  // backward: in = gradient of the output, out = gradient of the input
};

// Transforms over the last `rank` dimensions. `scale` multiplies the result. `inverse` applies to
// complex-to-complex transforms.
struct FftCall {
  FftKind kind = FftKind::kRealToComplex;
  int rank = 1;
  bool inverse = false;
  double scale = 1;
  Operand in, out;
  Operand workspace;
};

enum class AttentionKernel : std::uint8_t { kFlash, kEfficient };

// q [b, heads, s, d], k and v [b, kv_heads, t, d] by strides, heads a multiple of kv_heads; out
// like q; logsumexp fp32 [b, heads, s]. The mask (added to the scores, 16-bit or fp32, or absent)
// broadcasts to [b, heads, s, t].
struct AttentionCall {
  AttentionKernel kernel = AttentionKernel::kFlash;
  bool backward = false;
  bool causal = false;
  double scale = 1;
  double dropout = 0;
  std::uint64_t seed = 0, offset = 0;
  Operand q, k, v, mask, out, logsumexp;
  Operand dout, dq, dk, dv;
  Operand workspace;  // uint8, of the size the device requested; may be absent
};

// Forward: out[i] = table[index[i]]. Backward: the rows of out are added to the zero-initialized
// table.
struct EmbeddingCall {
  bool backward = false;
  std::int64_t padding_index = -1;
  Operand table, index, out;
};

enum class Optimizer : std::uint8_t { kSgd, kAdam, kAdamW, kRmsprop, kAdagrad };

// One parameter's update. state1/state2: momentum | exp_avg, exp_avg_sq | square_avg | sum. Absent
// where unused.
struct OptimizerCall {
  Optimizer op = Optimizer::kSgd;
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0,
         momentum = 0;
  std::int64_t step = 1;
  Operand parameter, gradient, state1, state2;
};

}  // namespace memfathom
