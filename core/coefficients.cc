#include "core/coefficients.h"

namespace memfathom {
namespace {

struct Meaning {
  std::string_view name;
  const char* words;
};

constexpr std::array<Meaning, 9> kMeanings{{
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
     "the size below which errors are absolute (bytes) and above which they are relative "
     "(percent)"},
    {"theta.per_layer", "diagnostic bytes per layer; 0 when no per-layer term is missing"},
}};

}  // namespace

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
  for (const LibraryConstant& constant : kLibraryConstants) {
    if (constant.name == coefficient) return std::string(constant.description);
  }
  for (const Meaning& meaning : kMeanings) {
    if (meaning.name == coefficient) return meaning.words;
  }
  if (coefficient.substr(0, 4) == "phi.") {
    const std::string_view term = coefficient.substr(coefficient.rfind('.') + 1);
    if (term == "constant") return "workspace that the operation requests for any shape";
    return "workspace bytes per byte of the operation's " + std::string(term);
  }
  return "";
}

const DefaultConstant& default_of(const LibraryConstant& constant, std::string_view framework) {
  return framework == "memfathom" ? constant.with_memfathom : constant.with_pytorch;
}

Constants default_constants(std::string_view framework) {
  Constants constants{};
  for (std::size_t i = 0; i < kConstantCount; ++i)
    constants[i] = default_of(kLibraryConstants[i], framework).value;
  return constants;
}

Constants constants_of(const Calibration& calibration) {
  Constants constants = default_constants(calibration.environment.framework);
  for (std::size_t i = 0; i < kConstantCount; ++i)
    constants[i] = calibration.value_of(kLibraryConstants[i].name, constants[i]);
  return constants;
}

}  // namespace memfathom
