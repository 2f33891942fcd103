#include "estimator/models/stack/stack_network.h"

#include <utility>

#include "core/error.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/stack/keys.h"
#include "estimator/models/stack/layer_types.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

struct StackInput {
  Shape sample;
  DType dtype = DType::kFp32;
  bool requires_grad = false;
  bool from_layer = false;  // made in the forward pass, as by a layer before
};

StackInput read_input(const Node& node, const ModelSettings& settings) {
  node.check_keys({"shape", "dtype", "requires_grad", "source"});
  StackInput input;
  for (const std::int64_t extent : node.at("shape").as_ints(1, kLargestExtent))
    input.sample.push_back(extent);
  if (const Node* dtype = node.find("dtype")) input.dtype = dtype->as_dtype();
  // Floating inputs come in the parameters' type under a pure 16-bit precision.
  if (is_16bit_float(settings.precision) && input.dtype == DType::kFp32)
    input.dtype = settings.precision;
  input.requires_grad = flag_or(node, "requires_grad", false);
  if (const Node* source = node.find("source"))
    input.from_layer = source->as_choice({"batch", "layer"}) == 1;
  return input;
}

Shape with_batch(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  for (const std::int64_t extent : sample) shape.push_back(extent);
  return shape;
}

// As a layer before would: allocates the input in the forward pass; its gradient dies at once.
Tensor from_source(const Tensor& seed, const Shape& shape, DType dtype) {
  Session& session = seed.session();
  Recording tape(session, "Source", {&seed});
  Tensor out = session.zeros(shape, dtype);
  tape.finish(out, [](Backward&) {});
  return out;
}

class StackNetwork final : public Network {
 public:
  StackNetwork(Builder& builder, const Node& model, const ModelSettings& settings)
      : session_(builder.session()),
        settings_(settings),
        input_(read_input(model.at("input"), settings)) {
    StackContext context{builder, settings_, with_batch(1, input_.sample), {}};
    layers_ = make_layers(context, model.at("layers"));
    output_ = context.shape;
    const Node* own = model.find("loss");
    loss_ = settings.loss != LossKind::kModel ? settings.loss
            : own != nullptr                  ? parse_loss(*own)
                                              : LossKind::kNone;
  }

  void load_batch(std::int64_t size, bool targets) override {
    // An input that has a gradient is no batch of a loader: it stays, and its gradient accumulates.
    if (x_ && x_.requires_grad() && batch_ == size) return;
    const BatchScope scope(session_, {&x_, &target_, &gradient_});
    batch_ = size;
    if (input_.from_layer) {
      x_ = session_.zeros({}, DType::kFp32);
    } else {
      x_ = session_.zeros(with_batch(size, input_.sample), input_.dtype);
    }
    x_.set_requires_grad(input_.requires_grad && (is_floating(x_.dtype())));
    Shape output = output_;
    output[0] = size;
    target_ = targets ? make_target(session_, loss_, folded(output), target_type()) : Tensor();
    if (targets && loss_ == LossKind::kNone && !input_has_gradient())
      gradient_ = session_.zeros(output, settings_.precision);
  }

  Tensor loss(Tensor* output) override {
    forget_handed_gradient();
    Tensor x = input();
    Tensor y = run_layers(layers_, x);
    if (loss_ != LossKind::kSink) x.reset();  // a layer's input has a name until the step ends
    if (output != nullptr) *output = y;
    if (loss_ == LossKind::kNone) return given_gradient(y);
    return apply_loss(loss_, y, target_, settings_.label_smoothing);
  }

  Tensor forward() override { return run_layers(layers_, input()); }

  void clear_gradients() override {
    if (x_) x_.set_grad({});
    forget_handed_gradient();
  }

  bool script_holds_output() const override {
    return !input_.requires_grad || loss_ == LossKind::kNone;
  }

 private:
  // As in a benchmark of layers.
  bool input_has_gradient() const { return input_.requires_grad && !input_.from_layer; }

  void forget_handed_gradient() {
    handed_.reset();
    if (input_has_gradient()) gradient_.reset();
  }

  Tensor input() const {
    if (!input_.from_layer) return x_;
    return from_source(x_, with_batch(batch_, input_.sample), input_.dtype);
  }

  // A sequence of classes: cross entropy is per position, over the last dimension.
  Shape folded(const Shape& output) const { return output; }

  DType target_type() const {
    return is_floating(input_.dtype) ? input_.dtype : settings_.precision;
  }

  // The loss is the output itself, and backward is handed its gradient: one that lies ready beside
  // the batch, or, in a benchmark, one of the input's type made for the call. The call holds it to
  // its end, and what it was cast to if the output has another type.
  Tensor given_gradient(const Tensor& y) {
    Recording tape(session_, "GivenGradient", {&y});
    Tensor loss = session_.zeros({}, DType::kFp32);
    tape.finish(loss, [this, shape = y.shape(), dtype = y.dtype()](Backward& b) {
      if (!gradient_) {
        const ComponentScope scope(session_, Component::kInputs);
        gradient_ = session_.zeros(shape, settings_.precision);
      }
      handed_ = to_dtype(gradient_, dtype);
      b.give(0, handed_);
    });
    return loss;
  }

  Session& session_;
  ModelSettings settings_;
  StackInput input_;
  std::vector<Layer> layers_;
  Shape output_;
  LossKind loss_ = LossKind::kNone;
  Tensor x_, target_;
  Tensor gradient_, handed_;  // the output's, where backward is handed one; as it was handed
  std::int64_t batch_ = 1;
};

}  // namespace

std::unique_ptr<Network> make_stack_network(Builder& builder, const Node& model,
                                            const ModelSettings& settings) {
  return std::make_unique<StackNetwork>(builder, model, settings);
}

}  // namespace memfathom
