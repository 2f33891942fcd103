#include "kernels/framework/ops/activation.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

struct Rule {
  Elementwise forward;
  Elementwise backward;
  bool saves_output;
  std::array<double, 4> scalars;
};

constexpr double kSeluAlpha = 1.6732632423543772;
constexpr double kSeluScale = 1.0507009873554805;

Rule rule_of(Activation activation) {
  switch (activation) {
    case Activation::kRelu: return {Elementwise::kRelu, Elementwise::kThresholdBackward, true, {}};
    case Activation::kGelu: return {Elementwise::kGelu, Elementwise::kGeluBackward, false, {}};
    case Activation::kGeluTanh:
      return {Elementwise::kGeluTanh, Elementwise::kGeluTanhBackward, false, {}};
    case Activation::kSilu: return {Elementwise::kSilu, Elementwise::kSiluBackward, false, {}};
    case Activation::kMish: return {Elementwise::kMish, Elementwise::kMishBackward, false, {}};
    case Activation::kTanh: return {Elementwise::kTanh, Elementwise::kTanhBackward, true, {}};
    case Activation::kSigmoid:
      return {Elementwise::kSigmoid, Elementwise::kSigmoidBackward, true, {}};
    case Activation::kLeakyRelu:
      return {Elementwise::kLeakyRelu, Elementwise::kLeakyReluBackward, false, {0.01}};
    case Activation::kElu: return {Elementwise::kElu, Elementwise::kEluBackward, false, {1, 1}};
    case Activation::kSelu:
      return {Elementwise::kElu, Elementwise::kEluBackward, false, {kSeluAlpha, kSeluScale}};
    case Activation::kSoftplus:
      return {Elementwise::kSoftplus, Elementwise::kSoftplusBackward, false, {1, 20}};
    case Activation::kRelu6:
      return {Elementwise::kHardtanh, Elementwise::kHardtanhBackward, false, {0, 6}};
    case Activation::kHardswish:
      return {Elementwise::kHardswish, Elementwise::kHardswishBackward, false, {}};
    case Activation::kGeluNew:
    case Activation::kGeluFast:
    case Activation::kQuickGelu:
    case Activation::kHardsigmoid:
    case Activation::kReluSquared:
    case Activation::kIdentity: break;
  }
  throw Error(ErrorKind::kInternal, "this activation has no kernel");
}

// The tanh approximation of GELU in elementary operations (Hugging Face's gelu_new).
Tensor gelu_new(const Tensor& x) {
  const Tensor half = mul_scalar(x, 0.5);
  // Each intermediate is freed once the next one exists, as in the Python expression.
  Tensor t = autocast_to_fp32(x);
  t = pow_scalar(t, 3);
  t = mul_scalar(t, 0.044715);
  t = add(x, t);
  t = mul_scalar(t, std::sqrt(2.0 / 3.14159265358979323846));
  t = activate(Activation::kTanh, t);
  t = add_scalar(t, 1);
  return mul(half, t);
}

// Hugging Face's gelu_fast: the same function in another order, which saves more tensors.
Tensor gelu_fast(const Tensor& x) {
  const Tensor half = mul_scalar(x, 0.5);
  const Tensor scaled = mul_scalar(x, std::sqrt(2.0 / 3.14159265358979323846));
  Tensor t = mul_scalar(x, 0.044715);
  t = mul(t, x);
  t = add_scalar(t, 1);
  t = mul(scaled, t);
  t = activate(Activation::kTanh, t);
  t = add_scalar(t, 1);
  return mul(half, t);
}

}  // namespace

std::optional<Activation> parse_activation(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Activation>, 23> kNames{{
      {"relu", Activation::kRelu},
      {"gelu", Activation::kGelu},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"gelu_tanh", Activation::kGeluTanh},
      {"gelu-approximate", Activation::kGeluTanh},
      {"gelu_new", Activation::kGeluNew},
      {"gelu_fast", Activation::kGeluFast},
      {"quick_gelu", Activation::kQuickGelu},
      {"silu", Activation::kSilu},
      {"swish", Activation::kSilu},
      {"mish", Activation::kMish},
      {"tanh", Activation::kTanh},
      {"sigmoid", Activation::kSigmoid},
      {"leaky_relu", Activation::kLeakyRelu},
      {"elu", Activation::kElu},
      {"softplus", Activation::kSoftplus},
      {"selu", Activation::kSelu},
      {"relu6", Activation::kRelu6},
      {"hardswish", Activation::kHardswish},
      {"hardsigmoid", Activation::kHardsigmoid},
      {"relu2", Activation::kReluSquared},
      {"identity", Activation::kIdentity},
      {"linear", Activation::kIdentity},
  }};
  for (const auto& [known, activation] : kNames) {
    if (known == name) return activation;
  }
  return std::nullopt;
}

Tensor activate(Activation activation, const Tensor& input) {
  if (activation == Activation::kIdentity) return input;
  if (activation == Activation::kGeluNew) return gelu_new(input);
  if (activation == Activation::kGeluFast) return gelu_fast(input);
  if (activation == Activation::kQuickGelu) {
    // The scaled input is freed once its sigmoid exists.
    Tensor gate = mul_scalar(input, 1.702);
    gate = activate(Activation::kSigmoid, gate);
    return mul(input, gate);
  }
  if (activation == Activation::kHardsigmoid) {
    Tensor shifted = add_scalar(input, 3);
    shifted = activate(Activation::kRelu6, shifted);
    return div_scalar(shifted, 6);
  }
  if (activation == Activation::kReluSquared) {
    const Tensor passed = activate(Activation::kRelu, input);
    return pow_scalar(autocast_to_fp32(passed), 2);
  }
  const Rule rule = rule_of(activation);
  const Tensor x = activation == Activation::kSoftplus ? autocast_to_fp32(input) : input;
  Recording tape(x.session(), "activation", {&x});
  if (!rule.saves_output) tape.save(x);
  Tensor out = elementwise(rule.forward, x.dtype(), {&x}, rule.scalars);
  if (rule.saves_output) tape.save(out);
  tape.finish(out, [rule](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0,
           elementwise(rule.backward, b.gradient().dtype(), {&b.gradient(), &kept}, rule.scalars));
  });
  return out;
}

void activate_in_place(Activation activation, Tensor& x) {
  if (activation == Activation::kIdentity) return;
  Rule rule = rule_of(activation);
  Session& session = x.session();
  Recording tape(session, "activation_", {&x});
  // An in-place operation overwrites its input, so those that save their input save a copy, unless
  // backward can be computed from the result.
  const bool is_elu = activation == Activation::kElu || activation == Activation::kSelu;
  const bool saves_output = rule.saves_output || is_elu || activation == Activation::kLeakyRelu;
  if (is_elu) rule.scalars[2] = 1;
  if (!saves_output && tape.wanted()) tape.save(clone(x.detach()));
  if (session.computes()) {
    session.device().run(
        ElementwiseCall{rule.forward, x.operand(), x.operand(), {}, {}, rule.scalars});
  }
  Tensor changed = x.detach();
  if (saves_output) tape.save(changed);
  tape.finish(changed, [rule](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0,
           elementwise(rule.backward, b.gradient().dtype(), {&b.gradient(), &kept}, rule.scalars));
  });
  x = changed;
}

Tensor prelu(const Tensor& input, const Tensor& weight) {
  Session& session = input.session();
  const Tensor x = autocast_to_lower(input);  // prelu is on autocast's 16-bit list
  const Tensor slopes = autocast_to_lower(weight);
  // aten reshapes the weight to broadcast over channels and calls a kernel with both gradients.
  Shape wide;
  for (int i = 0; i < x.rank(); ++i)
    wide.push_back(i == 1 && weight.elements() > 1 ? weight.elements() : 1);
  const Tensor w = view(slopes, wide);
  Recording tape(session, "_prelu_kernel", {&x, &w});
  tape.save(x);
  tape.save(w);
  Tensor out = elementwise(Elementwise::kPrelu, x.dtype(), {&x, &w});
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    const Tensor slope = b.saved(1);
    Tensor dx = elementwise(Elementwise::kPreluBackwardInput, b.gradient().dtype(),
                            {&b.gradient(), &kept, &slope});
    Tensor dw = elementwise(Elementwise::kPreluBackwardWeight, b.gradient().dtype(),
                            {&b.gradient(), &kept});
    if (b.needs(0)) b.give(0, std::move(dx));
    if (b.needs(1)) b.give(1, std::move(dw));
  });
  return out;
}

}  // namespace memfathom
