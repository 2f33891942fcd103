#include "core/coefficients.h"

namespace memfathom {
namespace {

constexpr double kMiB = 1 << 20;

struct Meaning {
  std::string_view name;
  const char* words;
};

constexpr std::array<Meaning, 14> kMeanings{{
    {"context",
     "the CUDA context: driver structures, stacks of all resident threads, kernel images loaded at "
     "start"},
    {"framework",
     "what the framework holds outside its allocator beyond the bare context: its own kernels and "
     "pools"},
    {"module.cublas", "kernel images of cuBLAS, loaded when the first matrix product runs"},
    {"module.cudnn", "kernel images of cuDNN, loaded when the first convolution runs"},
    {"module.cufft", "kernel images of cuFFT, loaded when the first transform runs"},
    {"theta.states",
     "diagnostic factor on parameters, gradients and optimizer state; 1 when the replay is right"},
    {"theta.activations", "diagnostic factor on saved activations; 1 when the replay is right"},
    {"theta.temporaries", "diagnostic factor on temporaries; 1 when the replay is right"},
    {"theta.logits", "diagnostic factor on logits and loss; 1 when the replay is right"},
    {"theta.workspaces",
     "diagnostic factor on library workspaces; 1 when the workspace models are right"},
    {"theta.slack",
     "diagnostic factor on the allocator's slack; 1 when the replayed allocator is right"},
    {"theta.replay",
     "diagnostic factor on the whole reserved peak; 1 when no proportional term is missing"},
    {"interval.knee",
     "the size below which a total is off by so many bytes, above which by so many percent"},
    {"theta.per_layer", "diagnostic bytes per layer; 0 when no per-layer term is missing"},
}};

}  // namespace

const char* constant_name(ConstantIndex index) {
  switch (index) {
    case kContext: return "context";
    case kFramework: return "framework";
    case kModuleCublas: return "module.cublas";
    case kModuleCudnn: return "module.cudnn";
    case kModuleCufft: return "module.cufft";
    case kConstantCount: break;
  }
  return "";
}

const char* theta_name(ThetaIndex index) {
  switch (index) {
    case kStates: return "theta.states";
    case kActivations: return "theta.activations";
    case kTemporaries: return "theta.temporaries";
    case kLogits: return "theta.logits";
    case kWorkspaces: return "theta.workspaces";
    case kSlack: return "theta.slack";
    case kThetaCount: break;
  }
  return "";
}

std::string describe_coefficient(std::string_view coefficient) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.name == coefficient) return meaning.words;
  }
  if (coefficient.substr(0, 4) == "phi.") {
    const std::string_view term = coefficient.substr(coefficient.rfind('.') + 1);
    if (term == "constant") return "workspace that the operation asks for whatever its shape";
    return "workspace bytes per byte of the operation's " + std::string(term);
  }
  return "";
}

// Lazily loaded contexts were reported between 250 and 650 MiB, one paired measurement shows 90 MiB
// more after the first forward pass, and cuDNN added about 300 MiB on an A100. Nothing is published
// for cuFFT: none is assumed.
DefaultConstant default_constant(ConstantIndex index, std::string_view framework) {
  switch (index) {
    case kContext: return {400 * kMiB, 200 * kMiB};
    case kFramework:
      return framework == "memfathom" ? DefaultConstant{0, 0}
                                      : DefaultConstant{100 * kMiB, 300 * kMiB};
    case kModuleCublas: return {90 * kMiB, 60 * kMiB};
    case kModuleCudnn: return {300 * kMiB, 200 * kMiB};
    case kModuleCufft: return {0, 100 * kMiB};
    case kConstantCount: break;
  }
  return {0, 0};
}

Constants default_constants(std::string_view framework) {
  Constants constants{};
  for (int i = 0; i < kConstantCount; ++i) {
    constants[static_cast<std::size_t>(i)] =
        default_constant(static_cast<ConstantIndex>(i), framework).value;
  }
  return constants;
}

Constants constants_of(const Calibration& calibration) {
  Constants constants = default_constants(calibration.environment.framework);
  for (int i = 0; i < kConstantCount; ++i) {
    double& value = constants[static_cast<std::size_t>(i)];
    value = calibration.value_of(constant_name(static_cast<ConstantIndex>(i)), value);
  }
  return constants;
}

}  // namespace memfathom
