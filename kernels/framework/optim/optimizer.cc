#include "kernels/framework/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/framework/device/calls.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

// bitsandbytes: small tensors keep fp32 states; larger ones use one byte per element and an fp32
// scale per block.
constexpr std::int64_t kQuantizedFrom = 4096;
constexpr std::int64_t kQuantizedBlock = 256;

Optimizer kernel_of(OptimizerName name) {
  switch (name) {
    case OptimizerName::kAdam: return Optimizer::kAdam;
    case OptimizerName::kAdamW:
    case OptimizerName::kAdamW8bit: return Optimizer::kAdamW;
    case OptimizerName::kRmsprop: return Optimizer::kRmsprop;
    case OptimizerName::kAdagrad: return Optimizer::kAdagrad;
    case OptimizerName::kNone:
    case OptimizerName::kSgd:
    case OptimizerName::kSgdMomentum:
    case OptimizerName::kAdafactor:
    case OptimizerName::kLion: break;
  }
  return Optimizer::kSgd;
}

// Our kernels compute only with these states; other states are only accounted for.
bool has_kernel(OptimizerName name) {
  switch (name) {
    case OptimizerName::kSgd:
    case OptimizerName::kSgdMomentum:
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW:
    case OptimizerName::kRmsprop:
    case OptimizerName::kAdagrad: return true;
    case OptimizerName::kNone:
    case OptimizerName::kAdamW8bit:
    case OptimizerName::kAdafactor:
    case OptimizerName::kLion: break;
  }
  return false;
}

// When the framework creates the states: Adagrad with the optimizer; SGD in its step, momentum
// being a copy of the gradient; the others before the step.
enum class StateCreation : std::uint8_t { kWithOptimizer, kBeforeStep, kInStep };

StateCreation state_creation(OptimizerName name) {
  switch (name) {
    case OptimizerName::kAdagrad: return StateCreation::kWithOptimizer;
    case OptimizerName::kSgdMomentum: return StateCreation::kInStep;
    case OptimizerName::kNone:
    case OptimizerName::kSgd:
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW:
    case OptimizerName::kAdamW8bit:
    case OptimizerName::kAdafactor:
    case OptimizerName::kLion:
    case OptimizerName::kRmsprop: break;
  }
  return StateCreation::kBeforeStep;
}

// The implementation that runs, which is not always the one that was asked for: bitsandbytes'
// optimizers are kernels, Lion is a loop over the parameters.
OptimizerForm effective_form(const OptimizerOptions& options) {
  if (options.bitsandbytes) return OptimizerForm::kFused;
  switch (options.name) {
    case OptimizerName::kAdamW8bit: return OptimizerForm::kFused;
    case OptimizerName::kLion:
      return options.form == OptimizerForm::kFused ? OptimizerForm::kFused
                                                   : OptimizerForm::kForLoop;
    case OptimizerName::kNone:
    case OptimizerName::kSgd:
    case OptimizerName::kSgdMomentum:
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW:
    case OptimizerName::kAdafactor:
    case OptimizerName::kRmsprop:
    case OptimizerName::kAdagrad: break;
  }
  return options.form;
}

Tensor zeros_like(const Tensor& x, DType dtype) {
  Session& session = x.session();
  Tensor made = session.empty_strided(x.shape(), x.strides(), dtype);
  if (session.computes())
    session.device().run(ElementwiseCall{Elementwise::kFill, made.operand(), {}, {}, {}, {0}});
  return made;
}

Tensor empty_like(const Tensor& x) {
  return x.session().empty_strided(x.shape(), x.strides(), x.dtype());
}

// x.mean(dim=-2, keepdim=True)
Tensor mean_of_rows(const Tensor& x) {
  Shape shape = x.shape();
  shape[-2] = 1;
  return x.session().empty(shape, x.dtype());
}

// Lists are freed from the end, as Python's are.
void release_from_end(std::vector<Tensor>& list) {
  while (!list.empty()) list.pop_back();
}

// Rebinds a name to a new list: the old list is freed after the new one exists.
void replace(std::vector<Tensor>& list, std::vector<Tensor> made) {
  release_from_end(list);
  list = std::move(made);
}

}  // namespace

std::optional<OptimizerName> parse_optimizer(std::string_view name) {
  static constexpr auto kAliases =
      std::to_array<EnumName<OptimizerName>>({{OptimizerName::kSgdMomentum, "sgd_momentum"},
                                              {OptimizerName::kAdamW, "adamw_torch"},
                                              {OptimizerName::kAdam, "adam-fused"},
                                              {OptimizerName::kAdamW, "adamw-fused"},
                                              {OptimizerName::kAdamW, "adamw_fused"},
                                              {OptimizerName::kAdamW, "adamw_torch_fused"},
                                              {OptimizerName::kAdamW, "adamw_hf"},
                                              {OptimizerName::kAdamW, "adamw_apex_fused"},
                                              {OptimizerName::kAdamW, "adamw_32bit"},
                                              {OptimizerName::kAdamW, "paged_adamw"},
                                              {OptimizerName::kAdamW, "paged_adamw_32bit"},
                                              {OptimizerName::kAdamW8bit, "adamw_8bit"},
                                              {OptimizerName::kAdamW8bit, "adamw8bit"},
                                              {OptimizerName::kAdamW8bit, "adamw_bnb_8bit"},
                                              {OptimizerName::kAdamW8bit, "paged_adamw_8bit"},
                                              {OptimizerName::kLion, "paged_lion_32bit"},
                                              {OptimizerName::kLion, "lion_32bit"}});
  return enum_from_name(name, kAliases);
}

bool names_bitsandbytes(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kNames{
      "adamw_32bit", "paged_adamw", "paged_adamw_32bit", "lion_32bit", "paged_lion_32bit"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool names_fused(std::string_view name) {
  return name.ends_with("-fused") || name.ends_with("_fused");
}

std::optional<OptimizerForm> parse_optimizer_form(std::string_view name) {
  static constexpr auto kAliases = std::to_array<EnumName<OptimizerForm>>(
      {{OptimizerForm::kForLoop, "forloop"}, {OptimizerForm::kForLoop, "for_loop"}});
  return enum_from_name(name, kAliases);
}

OptimizerRun::OptimizerRun(const OptimizerOptions& options, std::vector<Tensor> parameters)
    : options_(options), parameters_(std::move(parameters)), states_(parameters_.size()) {
  if (state_creation(options_.name) != StateCreation::kWithOptimizer) return;
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
  const DType own = options_.bitsandbytes ? DType::kFp32 : parameter.dtype();
  const DType dtype = state.master ? DType::kFp32 : options_.state_precision.value_or(own);
  switch (options_.name) {
    case OptimizerName::kNone:
    case OptimizerName::kSgd: break;
    case OptimizerName::kSgdMomentum: {
      state.first = clone(parameter.grad().detach());
      break;
    }
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW:
      if (options_.form == OptimizerForm::kFused && !options_.bitsandbytes)
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
  if (!session.computes() || !has_kernel(options_.name)) return;
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

// AdamW and Adafactor decay the parameters themselves, in place.
bool OptimizerRun::decays_gradients() const {
  switch (options_.name) {
    case OptimizerName::kAdamW:
    case OptimizerName::kAdafactor: return false;
    case OptimizerName::kNone:
    case OptimizerName::kSgd:
    case OptimizerName::kSgdMomentum:
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW8bit:
    case OptimizerName::kLion:
    case OptimizerName::kRmsprop:
    case OptimizerName::kAdagrad: break;
  }
  return options_.weight_decay != 0;
}

std::vector<Tensor> OptimizerRun::like_gradients(const Indices& group) const {
  std::vector<Tensor> list;
  list.reserve(group.size());
  for (const std::size_t i : group) list.push_back(empty_like(parameters_[i].grad()));
  return list;
}

std::vector<Tensor> OptimizerRun::like_states(const Indices& group) const {
  std::vector<Tensor> list;
  list.reserve(group.size());
  for (const std::size_t i : group)
    list.push_back(empty_like(states_[i].second ? states_[i].second : states_[i].first));
  return list;
}

void OptimizerRun::step_foreach(const Indices& group, Lists& lists) {
  release_from_end(lists.decayed);
  if (decays_gradients()) lists.decayed = like_gradients(group);
  // Momentum is cloned from the decayed gradients, which are all still alive.
  for (const std::size_t i : group) prepare(i);
  for (const std::size_t i : group) update(i);
  switch (options_.name) {
    case OptimizerName::kSgdMomentum: release_from_end(lists.decayed); break;
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW:
      release_from_end(lists.decayed);
      replace(lists.roots, like_states(group));
      break;
    case OptimizerName::kRmsprop: replace(lists.roots, like_states(group)); break;
    case OptimizerName::kAdagrad:
      replace(lists.roots, like_states(group));
      // Decayed gradients are multiplied in place.
      replace(lists.numerators, decays_gradients() ? lists.decayed : like_gradients(group));
      break;
    case OptimizerName::kAdafactor: step_foreach_adafactor(group, lists); break;
    case OptimizerName::kNone:
    case OptimizerName::kSgd:
    case OptimizerName::kAdamW8bit:
    case OptimizerName::kLion: break;
  }
}

// Means over rows and over columns, each freed at once; then the estimates, divided by a mean of
// the row variances.
void OptimizerRun::step_foreach_adafactor(const Indices& group, Lists& lists) {
  if (parameters_[group.front()].rank() < 2) {
    std::vector<Tensor> squares = like_gradients(group);
    release_from_end(squares);
    replace(lists.roots, like_gradients(group));
    return;
  }
  for (const bool rows : {true, false}) {
    std::vector<Tensor> means;
    for (const std::size_t i : group)
      means.push_back(empty_like(rows ? states_[i].first : states_[i].second));
    release_from_end(means);
  }
  std::vector<Tensor> estimates = like_gradients(group);
  std::vector<Tensor> means;
  for (const std::size_t i : group) means.push_back(mean_of_rows(states_[i].first));
  release_from_end(means);
  replace(lists.roots, std::move(estimates));
}

void OptimizerRun::step_for_loop(const Indices& parameters) {
  if (options_.name == OptimizerName::kAdafactor) return step_for_loop_adafactor(parameters);
  Tensor denominator;
  for (const std::size_t i : parameters) {
    const Tensor& gradient = parameters_[i].grad();
    Tensor decayed;
    if (decays_gradients()) decayed = empty_like(gradient);
    prepare(i);
    update(i);
    const Tensor& state = states_[i].first;
    switch (options_.name) {
      case OptimizerName::kAdam:
      case OptimizerName::kAdamW: {
        const Tensor root = empty_like(state);
        denominator = empty_like(state);
        break;
      }
      case OptimizerName::kRmsprop:
      case OptimizerName::kAdagrad: denominator = empty_like(state); break;
      case OptimizerName::kLion: {
        const Tensor interpolated = empty_like(state);
        denominator = empty_like(state);
        break;
      }
      case OptimizerName::kNone:
      case OptimizerName::kSgd:
      case OptimizerName::kSgdMomentum:
      case OptimizerName::kAdamW8bit:
      case OptimizerName::kAdafactor: break;
    }
  }
}

void OptimizerRun::step_for_loop_adafactor(const Indices& parameters) {
  Tensor row_mean;
  Tensor column_mean;
  Tensor square;
  Tensor estimate;
  for (const std::size_t i : parameters) {
    const Tensor& gradient = parameters_[i].grad();
    if (gradient.rank() < 2) {
      square = empty_like(gradient);
      estimate = empty_like(gradient);
      continue;
    }
    row_mean = empty_like(states_[i].first);
    column_mean = empty_like(states_[i].second);
    Tensor made = empty_like(gradient);
    { const Tensor divisor = mean_of_rows(states_[i].first); }
    estimate = std::move(made);
  }
}

// One group per type; PyTorch's hash table iterates over the newest first. Adafactor groups
// matrices and vectors separately.
std::vector<OptimizerRun::Indices> OptimizerRun::groups(const Indices& parameters) const {
  std::vector<std::pair<DType, Indices>> types;
  for (const std::size_t i : parameters) {
    const DType dtype = parameters_[i].dtype();
    auto type = types.begin();
    while (type != types.end() && type->first != dtype) ++type;
    if (type == types.end()) type = types.insert(types.end(), {dtype, {}});
    type->second.push_back(i);
  }
  std::vector<Indices> found;
  for (auto type = types.rbegin(); type != types.rend(); ++type) {
    Indices& members = type->second;
    if (options_.name == OptimizerName::kAdafactor) {
      const auto is_matrix = [&](std::size_t i) { return parameters_[i].rank() > 1; };
      const bool matrices_first = is_matrix(members.front());
      const auto rest = std::stable_partition(members.begin(), members.end(), [&](std::size_t i) {
        return is_matrix(i) == matrices_first;
      });
      if (rest != members.end()) {
        found.emplace_back(members.begin(), rest);
        members.erase(members.begin(), rest);
      }
    }
    found.push_back(std::move(members));
  }
  return found;
}

void OptimizerRun::step() {
  ++steps_;
  if (options_.name == OptimizerName::kNone) return;
  Indices ready;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad()) continue;
    ready.push_back(i);
    if (state_creation(options_.name) != StateCreation::kInStep) prepare(i);
  }
  switch (effective_form(options_)) {
    case OptimizerForm::kFused:
      for (const std::size_t i : ready) {
        prepare(i);
        update(i);
      }
      break;
    case OptimizerForm::kForLoop: step_for_loop(ready); break;
    case OptimizerForm::kForeach: {
      Lists lists;
      for (const Indices& group : groups(ready)) step_foreach(group, lists);
      break;
    }
  }
}

}  // namespace memfathom
