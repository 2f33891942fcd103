#include "tests/kernels/devices/cpu/run_torch_case.h"

namespace memfathom::testing {
namespace {

Elementwise operation(const std::string& name) {
  static const std::map<std::string, Elementwise> kNames{
      {"tanh", Elementwise::kTanh},
      {"tanh_backward", Elementwise::kTanhBackward},
      {"sigmoid", Elementwise::kSigmoid},
      {"sigmoid_backward", Elementwise::kSigmoidBackward},
      {"relu", Elementwise::kRelu},
      {"threshold_backward", Elementwise::kThresholdBackward},
      {"gelu", Elementwise::kGelu},
      {"gelu_backward", Elementwise::kGeluBackward},
      {"gelu_tanh", Elementwise::kGeluTanh},
      {"gelu_tanh_backward", Elementwise::kGeluTanhBackward},
      {"silu", Elementwise::kSilu},
      {"silu_backward", Elementwise::kSiluBackward},
      {"mish", Elementwise::kMish},
      {"mish_backward", Elementwise::kMishBackward},
      {"leaky_relu", Elementwise::kLeakyRelu},
      {"leaky_relu_backward", Elementwise::kLeakyReluBackward},
      {"elu", Elementwise::kElu},
      {"elu_backward", Elementwise::kEluBackward},
      {"softplus", Elementwise::kSoftplus},
      {"softplus_backward", Elementwise::kSoftplusBackward},
      {"hardtanh", Elementwise::kHardtanh},
      {"hardtanh_backward", Elementwise::kHardtanhBackward},
      {"hardswish", Elementwise::kHardswish},
      {"hardswish_backward", Elementwise::kHardswishBackward},
      {"rsqrt", Elementwise::kRsqrt},
      {"rsqrt_backward", Elementwise::kRsqrtBackward},
      {"squared_difference", Elementwise::kSquaredDifference},
      {"mse_backward", Elementwise::kMseBackward},
      {"abs_difference", Elementwise::kAbsDifference},
      {"l1_backward", Elementwise::kL1Backward},
      {"smooth_l1", Elementwise::kSmoothL1},
      {"smooth_l1_backward", Elementwise::kSmoothL1Backward},
      {"bce_with_logits", Elementwise::kBceWithLogits},
      {"bce_with_logits_backward", Elementwise::kBceWithLogitsBackward},
      {"bce", Elementwise::kBce},
      {"bce_backward", Elementwise::kBceBackward}};
  return kNames.at(name);
}

std::array<double, 4> scalars_of(const TorchCase& c) {
  std::array<double, 4> scalars{};
  const auto given = c.options.at("scalars").get<std::vector<double>>();
  std::copy(given.begin(), given.end(), scalars.begin());
  return scalars;
}

// One function per kind of case. `r` holds an empty tensor for every output of the case.
template <typename D>
void activation(const TorchCase& c, D& device, Results& r) {
  const std::array<double, 4> scalars = scalars_of(c);
  device.run(
      ElementwiseCall{operation(c.options.at("forward")), r["y"], c.input("x"), {}, {}, scalars});
  const Operand saved =
      c.options.at("saves") == "input" ? c.input("x").operand() : r["y"].operand();
  device.run(ElementwiseCall{
      operation(c.options.at("backward")), r["dx"], c.input("g"), saved, {}, scalars});
}

template <typename D>
void loss(const TorchCase& c, D& device, Results& r) {
  const std::array<double, 4> scalars = scalars_of(c);
  const double factor = 1.0 / static_cast<double>(c.input("x").size());
  device.run(ElementwiseCall{
      operation(c.options.at("forward")), r["y"], c.input("x"), c.input("target"), {}, scalars});
  device.run(ElementwiseCall{operation(c.options.at("backward")),
                             r["dx"],
                             c.input("g"),
                             c.input("x"),
                             c.input("target"),
                             {factor, scalars[0]}});
}

template <typename D>
void softmax(const TorchCase& c, D& device, Results& r) {
  const Softmax op = c.options.at("op") == "softmax" ? Softmax::kSoftmax : Softmax::kLogSoftmax;
  device.run(SoftmaxCall{op, false, c.options.at("dim"), r["y"], c.input("x"), {}});
  device.run(SoftmaxCall{op, true, c.options.at("dim"), r["dx"], c.input("g"), r["y"]});
}

template <typename D>
void norm(const TorchCase& c, D& device, Results& r) {
  static const std::map<std::string, Norm> kOps{{"layer", Norm::kLayer},
                                                {"rms", Norm::kRms},
                                                {"group", Norm::kGroup},
                                                {"batch", Norm::kBatch}};
  HostTensor mean({c.input("x").size()}, DType::kFp32), rstd = mean;
  NormCall call;
  call.op = kOps.at(c.options.at("op"));
  call.training = c.options.at("training");
  call.groups = c.options.at("groups");
  call.x = c.input("x");
  call.weight = c.input("weight");
  call.bias = c.input_or_absent("bias");
  call.y = r["y"];
  if (call.op != Norm::kRms) call.mean = mean;
  call.rstd = rstd;
  if (call.op == Norm::kBatch) {
    r["new_running_mean"] = c.input("running_mean");
    r["new_running_var"] = c.input("running_var");
    call.running_mean = r["new_running_mean"];
    call.running_var = r["new_running_var"];
  }
  device.run(call);
  call.backward = true;
  call.dy = c.input("dy");
  call.dx = r["dx"];
  call.dweight = r["dweight"];
  if (call.bias) call.dbias = r["dbias"];
  device.run(call);
}

template <typename D>
void nll(const TorchCase& c, D& device, Results& r) {
  HostTensor total({1}, DType::kFp32);
  const HostTensor one = HostTensor::of({1}, {1}, DType::kFp32);
  NllCall call;
  call.log_probabilities = c.input("log_probabilities");
  call.target = c.input("target");
  call.loss = r["loss"];
  call.total_weight = total;
  device.run(call);
  call.backward = true;
  call.grad_loss = one;
  call.grad_input = r["dx"];
  device.run(call);
}

template <typename D>
void convolution(const TorchCase& c, D& device, Results& r) {
  const Shape& x = c.input("x").operand().shape;
  const auto every = [&](const char* key) {
    Shape shape;
    for (int d = 2; d < x.rank(); ++d) shape.push_back(c.options.at(key).get<std::int64_t>());
    return shape;
  };
  ConvolutionCall call;
  call.query = {ConvolutionKind::kForward,
                x,
                c.input("w").operand().shape,
                every("stride"),
                every("padding"),
                every("output_padding"),
                every("dilation"),
                c.options.at("groups"),
                c.options.at("transposed")};
  call.x = c.input("x");
  call.w = c.input("w");
  call.y = r["y"];
  call.dy = c.input("dy");
  call.dx = r["dx"];
  call.dw = r["dw"];
  for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                     ConvolutionKind::kWeightGradient}) {
    call.query.kind = kind;
    device.run(call);
  }
}

template <typename D>
void pool(const TorchCase& c, D& device, Results& r) {
  static const std::map<std::string, Pool> kOps{
      {"max", Pool::kMax}, {"average", Pool::kAverage}, {"adaptive", Pool::kAdaptiveAverage}};
  PoolCall call{kOps.at(c.options.at("op")),
                false,
                c.shape_option("kernel"),
                c.shape_option("stride"),
                c.shape_option("padding"),
                c.options.at("count_include_pad"),
                c.input("x"),
                r["y"],
                {},
                c.input("dy"),
                r["dx"]};
  if (call.op == Pool::kMax) call.indices = r["indices"];
  device.run(call);
  call.backward = true;
  device.run(call);
}

template <typename D>
void upsample(const TorchCase& c, D& device, Results& r) {
  const Upsample op = c.options.at("op") == "nearest" ? Upsample::kNearest : Upsample::kBilinear;
  device.run(UpsampleCall{op, false, c.input("x"), r["y"]});
  device.run(UpsampleCall{op, true, c.input("dy"), r["dx"]});
}

template <typename D>
void transform(const TorchCase& c, D& device, Results& r) {
  static const std::map<std::string, FftKind> kKinds{
      {"real_to_complex", FftKind::kRealToComplex},
      {"complex_to_real", FftKind::kComplexToReal},
      {"complex_to_complex", FftKind::kComplexToComplex}};
  device.run(FftCall{kKinds.at(c.options.at("kind")),
                     c.options.at("rank"),
                     c.options.at("inverse"),
                     c.options.at("scale"),
                     c.input("x"),
                     r["y"],
                     {}});
}

template <typename D>
void attention(const TorchCase& c, D& device, Results& r) {
  const Shape& q = c.input("q").operand().shape;
  HostTensor logsumexp({q[0], q[1], q[2]}, DType::kFp32);
  AttentionCall call;
  call.causal = c.options.at("causal");
  call.scale = c.options.at("scale");
  call.q = c.input("q");
  call.k = c.input("k");
  call.v = c.input("v");
  call.mask = c.input_or_absent("mask");
  call.out = r["out"];
  call.logsumexp = logsumexp;
  device.run(call);
  call.backward = true;
  call.dout = c.input("dout");
  call.dq = r["dq"];
  call.dk = r["dk"];
  call.dv = r["dv"];
  device.run(call);
}

template <typename D>
void embedding(const TorchCase& c, D& device, Results& r) {
  const std::int64_t padding = c.options.at("padding_index");
  device.run(EmbeddingCall{false, padding, c.input("table"), c.input("index"), r["out"]});
  device.run(EmbeddingCall{true, padding, r["dtable"], c.input("index"), c.input("g")});
}

template <typename D>
void gemm(const TorchCase& c, D& device, Results& r) {
  if (c.in.count("old")) r["out"] = c.input("old");
  device.run(GemmCall{r["out"], c.input("a"), c.input("b"), c.input_or_absent("bias"),
                      c.options.at("alpha"), c.options.at("beta")});
}

template <typename D>
void optimizer(const TorchCase& c, D& device, Results& r) {
  static const std::map<std::string, Optimizer> kOps{{"sgd", Optimizer::kSgd},
                                                     {"adam", Optimizer::kAdam},
                                                     {"adamw", Optimizer::kAdamW},
                                                     {"rmsprop", Optimizer::kRmsprop},
                                                     {"adagrad", Optimizer::kAdagrad}};
  r["parameter"] = c.input("parameter");
  OptimizerCall call;
  call.op = kOps.at(c.options.at("op"));
  call.learning_rate = c.options.at("learning_rate");
  call.beta1 = c.options.at("beta1");
  call.beta2 = c.options.at("beta2");
  call.eps = c.options.at("eps");
  call.weight_decay = c.options.at("weight_decay");
  call.momentum = c.options.at("momentum");
  call.parameter = r["parameter"];
  if (r.count("state1")) call.state1 = r["state1"];
  if (r.count("state2")) call.state2 = r["state2"];
  for (call.step = 1; call.step <= 3; ++call.step) {
    call.gradient = c.input("gradient" + std::to_string(call.step));
    device.run(call);
  }
}

template <typename D>
Results run_case(const TorchCase& c, D& device) {
  Results r;
  for (const auto& [key, expected] : c.out)
    r[key] = HostTensor(expected.operand().shape, expected.operand().dtype);
  const std::map<std::string, void (*)(const TorchCase&, D&, Results&)> kinds{
      {"activation", activation<D>},
      {"loss", loss<D>},
      {"softmax", softmax<D>},
      {"norm", norm<D>},
      {"nll", nll<D>},
      {"convolution", convolution<D>},
      {"pool", pool<D>},
      {"upsample", upsample<D>},
      {"fft", transform<D>},
      {"attention", attention<D>},
      {"embedding", embedding<D>},
      {"gemm", gemm<D>},
      {"optimizer", optimizer<D>},
      {"copy", [](const TorchCase& copied, D& target, Results& to) {
         target.run(ElementwiseCall{Elementwise::kCopy, to["y"], copied.input("x"), {}, {}, {}});
       }}};
  kinds.at(c.kind)(c, device, r);
  return r;
}

}  // namespace

Results run_torch_case(const TorchCase& c, ReferenceRunner& device) { return run_case(c, device); }
Results run_torch_case(const TorchCase& c, Device& device) { return run_case(c, device); }

}  // namespace memfathom::testing
