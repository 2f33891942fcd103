#include "kernels/optim/optimizer.h"

#include <array>
#include <map>
#include <utility>

#include "kernels/calls.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/tensor/session.h"

namespace memfathom {
namespace {

// bitsandbytes: smaller tensors keep fp32 states; larger ones a byte per element and an fp32 scale
// per block.
constexpr std::int64_t kQuantizedFrom = 4096;
constexpr std::int64_t kQuantizedBlock = 256;

Optimizer kernel_of(OptimizerName name) {
  switch (name) {
    case OptimizerName::kAdam: return Optimizer::kAdam;
    case OptimizerName::kAdamW:
    case OptimizerName::kAdamW8bit: return Optimizer::kAdamW;
    case OptimizerName::kRmsprop: return Optimizer::kRmsprop;
    case OptimizerName::kAdagrad: return Optimizer::kAdagrad;
    default: return Optimizer::kSgd;
  }
}

// Only these have states that our kernels compute with; the others are kept as accounts.
bool has_kernel(const OptimizerOptions& options) {
  return options.name != OptimizerName::kAdamW8bit && options.name != OptimizerName::kAdafactor &&
         options.name != OptimizerName::kLion && options.name != OptimizerName::kNone;
}

Tensor zeros_like(const Tensor& x, DType dtype) {
  Session& session = x.session();
  Tensor made = session.empty_strided(x.shape(), x.strides(), dtype);
  if (session.computes())
    session.device().run(ElementwiseCall{Elementwise::kFill, made.operand(), {}, {}, {}, {0}});
  return made;
}

// Lists die from their end, as Python's do.
void release_from_end(std::vector<Tensor>& list) {
  while (!list.empty()) list.pop_back();
}

}  // namespace

std::optional<OptimizerName> parse_optimizer(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, OptimizerName>, 22> kNames{{
      {"none", OptimizerName::kNone},
      {"sgd", OptimizerName::kSgd},
      {"sgd-momentum", OptimizerName::kSgdMomentum},
      {"adam", OptimizerName::kAdam},
      {"adamw", OptimizerName::kAdamW},
      {"adamw_torch", OptimizerName::kAdamW},
      {"adamw_torch_fused", OptimizerName::kAdamW},
      {"adamw_hf", OptimizerName::kAdamW},
      {"adamw_apex_fused", OptimizerName::kAdamW},
      {"paged_adamw", OptimizerName::kAdamW},
      {"paged_adamw_32bit", OptimizerName::kAdamW},
      {"adamw-8bit", OptimizerName::kAdamW8bit},
      {"adamw_8bit", OptimizerName::kAdamW8bit},
      {"adamw8bit", OptimizerName::kAdamW8bit},
      {"adamw_bnb_8bit", OptimizerName::kAdamW8bit},
      {"paged_adamw_8bit", OptimizerName::kAdamW8bit},
      {"adafactor", OptimizerName::kAdafactor},
      {"lion", OptimizerName::kLion},
      {"lion_32bit", OptimizerName::kLion},
      {"rmsprop", OptimizerName::kRmsprop},
      {"adagrad", OptimizerName::kAdagrad},
      {"sgd_momentum", OptimizerName::kSgdMomentum},
  }};
  for (const auto& [known, optimizer] : kNames) {
    if (known == name) return optimizer;
  }
  return std::nullopt;
}

std::optional<OptimizerForm> parse_optimizer_form(std::string_view name) {
  if (name == "for-loop" || name == "forloop" || name == "for_loop") return OptimizerForm::kForLoop;
  if (name == "foreach") return OptimizerForm::kForeach;
  if (name == "fused") return OptimizerForm::kFused;
  return std::nullopt;
}

OptimizerRun::OptimizerRun(const OptimizerOptions& options, std::vector<Tensor> parameters)
    : options_(options), parameters_(std::move(parameters)), states_(parameters_.size()) {
  if (options_.name != OptimizerName::kAdagrad) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) prepare(i);
}

void OptimizerRun::prepare(std::size_t i) {
  State& state = states_[i];
  if (state.ready) return;
  state.ready = true;
  const Tensor& parameter = parameters_[i];
  Session& session = parameter.session();
  const ComponentScope scope(session, Component::kOptimizerState);
  const Scoped<ModuleIndex> module(session.module, parameter.impl()->storage->module());
  if (options_.master_weights && is_16bit_float(parameter.dtype())) {
    state.master = to_dtype(parameter.detach(), DType::kFp32);
  }
  const DType dtype =
      state.master ? DType::kFp32 : options_.state_precision.value_or(parameter.dtype());
  switch (options_.name) {
    case OptimizerName::kNone:
    case OptimizerName::kSgd: break;
    case OptimizerName::kSgdMomentum: {
      state.first = clone(parameter.grad().detach());
      break;
    }
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW:
      if (options_.form == OptimizerForm::kFused)
        state.step_count = session.zeros({}, DType::kFp32);
      state.first = zeros_like(parameter, dtype);
      state.second = zeros_like(parameter, dtype);
      break;
    case OptimizerName::kAdamW8bit: {
      const std::int64_t n = parameter.elements();
      if (n < kQuantizedFrom) {
        state.first = zeros_like(parameter, DType::kFp32);
        state.second = zeros_like(parameter, DType::kFp32);
        break;
      }
      if (!quantile_maps_[0]) {
        for (Tensor& map : quantile_maps_) map = session.empty({256}, DType::kFp32);
      }
      const std::int64_t blocks = (n + kQuantizedBlock - 1) / kQuantizedBlock;
      state.first = zeros_like(parameter, DType::kUint8);
      state.scales1 = session.zeros({blocks}, DType::kFp32);
      state.second = zeros_like(parameter, DType::kUint8);
      state.scales2 = session.zeros({blocks}, DType::kFp32);
      break;
    }
    case OptimizerName::kAdafactor: {
      if (parameter.rank() < 2) {
        state.first = zeros_like(parameter, dtype);
        break;
      }
      Shape rows = parameter.shape();
      Shape columns = parameter.shape();
      rows[-1] = 1;
      columns[-2] = 1;
      state.first = session.zeros(rows, dtype);
      state.second = session.zeros(columns, dtype);
      break;
    }
    case OptimizerName::kLion:
    case OptimizerName::kRmsprop:
    case OptimizerName::kAdagrad: state.first = zeros_like(parameter, dtype); break;
  }
}

void OptimizerRun::update(std::size_t i) {
  Session& session = parameters_[i].session();
  if (!session.computes() || !has_kernel(options_)) return;
  OptimizerCall call;
  call.op = kernel_of(options_.name);
  call.learning_rate = options_.learning_rate;
  call.weight_decay = options_.weight_decay;
  call.momentum = options_.name == OptimizerName::kSgdMomentum ? 0.9 : 0;
  call.step = steps_;
  call.parameter = parameters_[i].operand();
  call.gradient = parameters_[i].grad().operand();
  call.state1 = states_[i].first.operand();
  call.state2 = states_[i].second.operand();
  session.device().run(call);
}

std::vector<Tensor> OptimizerRun::temporaries(const std::vector<std::size_t>& group,
                                              bool of_gradients) {
  std::vector<Tensor> list;
  list.reserve(group.size());
  for (const std::size_t i : group) {
    const Tensor& model = of_gradients ? parameters_[i].grad()
                                       : (states_[i].second ? states_[i].second : states_[i].first);
    list.push_back(model.session().empty_strided(model.shape(), model.strides(), model.dtype()));
  }
  return list;
}

void OptimizerRun::step_foreach(const std::vector<std::size_t>& group) {
  const bool l2 = options_.weight_decay != 0 && options_.name != OptimizerName::kAdamW;
  std::vector<Tensor> decayed;
  if (l2) decayed = temporaries(group, true);
  for (const std::size_t i : group) update(i);
  switch (options_.name) {
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW: {
      release_from_end(decayed);
      std::vector<Tensor> roots = temporaries(group, false);
      release_from_end(lingering_);
      lingering_ = std::move(roots);
      break;
    }
    case OptimizerName::kRmsprop: lingering_ = temporaries(group, false); break;
    case OptimizerName::kAdagrad: {
      std::vector<Tensor> roots = temporaries(group, false);
      // Decayed gradients are multiplied in place.
      std::vector<Tensor> numerators;
      if (!l2) numerators = temporaries(group, true);
      release_from_end(numerators);
      release_from_end(roots);
      break;
    }
    case OptimizerName::kAdafactor: lingering_ = temporaries(group, true); break;
    default: break;
  }
  release_from_end(decayed);
}

void OptimizerRun::step_for_loop(const std::vector<std::size_t>& group) {
  Tensor denominator;
  for (const std::size_t i : group) {
    const Tensor& parameter = parameters_[i];
    Session& session = parameter.session();
    const auto temporary = [&] {
      const Tensor& model = states_[i].first ? states_[i].first : parameter.grad();
      return session.empty_strided(parameter.shape(), parameter.strides(), model.dtype());
    };
    const bool l2 = options_.weight_decay != 0 && options_.name != OptimizerName::kAdamW;
    Tensor decayed;
    if (l2) decayed = temporary();
    update(i);
    switch (options_.name) {
      case OptimizerName::kAdam:
      case OptimizerName::kAdamW: {
        const Tensor root = temporary();
        denominator = temporary();
        break;
      }
      case OptimizerName::kRmsprop:
      case OptimizerName::kAdagrad:
      case OptimizerName::kAdafactor:
        denominator = temporary();
        break;  // changed in place after that
      case OptimizerName::kLion: {
        const Tensor interpolated = temporary();
        denominator = temporary();
        break;
      }
      default: break;
    }
  }
}

void OptimizerRun::step() {
  ++steps_;
  // One group per type, in the order in which the types first appear.
  std::vector<std::pair<DType, std::vector<std::size_t>>> groups;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad() || options_.name == OptimizerName::kNone) continue;
    if (options_.name != OptimizerName::kSgdMomentum || options_.weight_decay == 0) prepare(i);
    const DType dtype = parameters_[i].dtype();
    auto group = groups.begin();
    while (group != groups.end() && group->first != dtype) ++group;
    if (group == groups.end()) group = groups.insert(groups.end(), {dtype, {}});
    group->second.push_back(i);
  }
  const bool in_kernel =
      options_.form == OptimizerForm::kFused || options_.name == OptimizerName::kAdamW8bit;
  for (const auto& [dtype, group] : groups) {
    if (in_kernel) {
      for (const std::size_t i : group) update(i);
    } else if (options_.form == OptimizerForm::kForLoop || options_.name == OptimizerName::kLion) {
      step_for_loop(group);
    } else {
      step_foreach(group);
    }
    for (const std::size_t i : group)
      prepare(i);  // SGD's momentum with a decay term is cloned from the decayed gradient
  }
  release_from_end(lingering_);
}

}  // namespace memfathom
