#include <utility>

#include "estimator/models/blocks/experts.h"
#include "estimator/models/blocks/gather_rows.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// torch's grouped_mm of [S, in] with [experts, out, in]: it is no operation of autocast, the input
// follows the weights' type. Kernels for packed matrices keep the input's.
Tensor grouped_product(const Tensor& input, const ExpertMatrices& matrices) {
  Session& session = input.session();
  const Tensor& weight = matrices.weight;
  const Tensor x = matrices.packed ? input : to_dtype(input, weight.dtype());
  Recording tape(session, "_grouped_mm", {&x, &weight});
  // Each operand is kept for the other's gradient, as of every product.
  tape.save(tape.needs(1) ? x : Tensor());
  tape.save(tape.needs(0) ? weight : Tensor());
  Tensor out = session.empty({x.size(0), matrices.out}, x.dtype());
  tape.finish(out, [inputs = x.shape(), weights = weight.shape(), dtype = x.dtype()](Backward& b) {
    const Tensor kept_x = b.saved(0);
    const Tensor kept_weight = b.saved(1);
    if (b.needs(0)) b.give(0, b.session().empty(inputs, dtype));
    if (b.needs(1)) b.give(1, b.session().empty(weights, dtype));
  });
  return out;
}

constexpr std::int64_t kFp8Block = 128;
constexpr std::int64_t kMxfp4Block = 32;

ExpertMatrices make_matrices(Builder& builder, const char* name, std::int64_t experts,
                             std::int64_t out, std::int64_t in) {
  const auto blocks = [](std::int64_t n, std::int64_t size) { return (n + size - 1) / size; };
  ExpertMatrices made;
  made.out = out;
  switch (builder.options().quantization) {
    case Quantization::kFp8:
      made.weight = builder.frozen_parameter(name, {experts, out, in}, DType::kInt8);
      made.scales = builder.frozen_parameter(
          "weight_scale_inv", {experts, blocks(out, kFp8Block), blocks(in, kFp8Block)},
          DType::kFp32);
      break;
    case Quantization::kMxfp4: {
      const std::int64_t groups = blocks(in, kMxfp4Block);
      made.weight =
          builder.frozen_parameter(name, {experts, out, groups, kMxfp4Block / 2}, DType::kUint8);
      made.scales = builder.frozen_parameter("scales", {experts, out, groups}, DType::kUint8);
      break;
    }
    case Quantization::kNone:
    case Quantization::kInt8:
    case Quantization::kNf4:
    case Quantization::kNf4Double:
    case Quantization::kGptq:
    case Quantization::kAwq: made.weight = builder.parameter(name, {experts, out, in}); return made;
  }
  made.packed = true;
  builder.count_parameters(Shape{experts, out, in}.elements());
  return made;
}

// What sorting the choices by expert makes: the sorted ids, their places, and the way back.
struct Order {
  Tensor sorted, places, offsets;
};

Order sort_by_expert(const Tensor& chosen, std::int64_t experts) {
  Session& session = chosen.session();
  const Shape flat{chosen.elements()};
  Order order{session.empty(flat, DType::kInt64), session.empty(flat, DType::kInt64), {}};
  const Tensor narrow = session.empty(flat, DType::kInt32);
  const Tensor counts = session.empty({experts}, DType::kInt32);
  order.offsets = session.empty({experts}, DType::kInt32);
  return order;
}

// x.clamp(...): truth values tell where the gradient passes.
Tensor clamped(const Tensor& x, bool both_sides) {
  Session& session = x.session();
  Recording tape(session, "clamp", {&x});
  tape.save(x);
  Tensor out = session.empty(x.shape(), x.dtype());
  tape.finish(out, [both_sides](Backward& b) {
    const Tensor kept = b.saved(0);
    const Tensor gradient = b.gradient();
    const Tensor low = b.session().empty(kept.shape(), DType::kBool);
    Tensor high;
    if (both_sides) high = b.session().empty(kept.shape(), DType::kBool);
    b.give(0, b.session().empty(gradient.shape(), gradient.dtype()));
  });
  return out;
}

// (up + 1) * gate * sigmoid(alpha * gate) of neighbouring columns, both clamped before.
Tensor gated_by_neighbours(const Tensor& both) {
  const std::int64_t half = both.size(-1) / 2;
  const Tensor gate = clamped(slice(both, -1, 0, half), false);
  const Tensor up = clamped(slice(both, -1, half, both.size(-1)), true);
  Tensor passed;
  {
    Tensor sigmoid = mul_scalar(gate, 1.702);
    sigmoid = activate(Activation::kSigmoid, sigmoid);
    passed = mul(gate, sigmoid);
  }
  const Tensor raised = add_scalar(up, 1);
  return mul(raised, passed);
}

Tensor gated(const ExpertsConfig& cfg, const Tensor& both) {
  if (cfg.form == ExpertForm::kClampedWithBias) return gated_by_neighbours(both);
  const std::vector<Tensor> parts = chunk(both, 2, -1);
  const Tensor gate = activate(cfg.activation, parts[0]);
  return mul(gate, parts[1]);
}

}  // namespace

GroupedExperts::GroupedExperts(Builder& builder, const ExpertsConfig& cfg) : config_(cfg) {
  const PathScope scope(builder, "mlp");
  const bool biased = cfg.form == ExpertForm::kClampedWithBias;
  router_.cfg = cfg.router;
  router_.per_token = cfg.per_token;
  {
    const PathScope gate(builder, biased ? "router" : "gate");
    router_.gate.weight = builder.parameter("weight", {cfg.experts, cfg.hidden});
    if (biased) router_.gate.bias = builder.parameter("bias", {cfg.experts});
  }
  make_correction(builder, cfg, router_);
  const PathScope experts(builder, "experts");
  gate_up_ = make_matrices(builder, "gate_up_proj", cfg.experts, 2 * cfg.ffn, cfg.hidden);
  if (biased) gate_up_bias_ = builder.parameter("gate_up_proj_bias", {cfg.experts, 2 * cfg.ffn});
  down_ = make_matrices(builder, "down_proj", cfg.experts, cfg.hidden, cfg.ffn);
  if (biased) down_bias_ = builder.parameter("down_proj_bias", {cfg.experts, cfg.hidden});
}

Tensor GroupedExperts::operator()(const Tensor& x) const {
  Session& session = x.session();
  reject_real_device(session);
  const Tensor tokens = view(x, {-1, config_.hidden});
  const Routing routing = route(router_, tokens);
  const Order order = sort_by_expert(routing.chosen, config_.experts);
  Tensor selected;
  {
    const Tensor origins = session.empty(order.places.shape(), DType::kInt64);
    selected = gather_rows(tokens, origins);
  }
  const Tensor weights = gather_rows(view(routing.weights, {-1}), order.places);
  Tensor biases;  // Python's `selected_biases`
  const auto product = [&](const Tensor& input, const ExpertMatrices& matrices,
                           const Tensor& bias) {
    if (bias) biases = gather_rows(bias, order.sorted);
    Tensor made = grouped_product(input, matrices);
    if (bias) add_in_place(made, biases);
    return made;
  };
  Tensor result = product(selected, gate_up_, gate_up_bias_);
  result = gated(config_, result);
  result = product(result, down_, down_bias_);
  Tensor weighted = mul(result, unsqueeze(weights, 1));
  const Tensor back = session.empty(order.places.shape(), DType::kInt64);
  weighted = gather_rows(weighted, back);
  Tensor whole =
      sum(view(weighted, {tokens.size(0), config_.per_token, config_.hidden}), {1}, false);
  whole = to_dtype(whole, tokens.dtype());
  return view(whole, x.shape());
}

}  // namespace memfathom
