// Optimizer: states and temporaries of PyTorch's optimizers in their for-loop, foreach and fused
// implementations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/enum_names.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

enum class OptimizerName : std::uint8_t {
  kNone,
  kSgd,
  kSgdMomentum,
  kAdam,
  kAdamW,
  kAdamW8bit,
  kAdafactor,
  kLion,
  kRmsprop,
  kAdagrad,
};
enum class OptimizerForm : std::uint8_t { kForLoop, kForeach, kFused };

template <>
inline constexpr auto kEnumNames<OptimizerName> =
    std::to_array<EnumName<OptimizerName>>({{OptimizerName::kNone, "none"},
                                            {OptimizerName::kSgd, "sgd"},
                                            {OptimizerName::kSgdMomentum, "sgd-momentum"},
                                            {OptimizerName::kAdam, "adam"},
                                            {OptimizerName::kAdamW, "adamw"},
                                            {OptimizerName::kAdamW8bit, "adamw-8bit"},
                                            {OptimizerName::kAdafactor, "adafactor"},
                                            {OptimizerName::kLion, "lion"},
                                            {OptimizerName::kRmsprop, "rmsprop"},
                                            {OptimizerName::kAdagrad, "adagrad"}});
template <>
inline constexpr auto kEnumNames<OptimizerForm> =
    std::to_array<EnumName<OptimizerForm>>({{OptimizerForm::kForeach, "foreach"},
                                            {OptimizerForm::kFused, "fused"},
                                            {OptimizerForm::kForLoop, "for-loop"}});

struct OptimizerOptions {
  OptimizerName name = OptimizerName::kAdamW;
  OptimizerForm form = OptimizerForm::kForeach;
  double learning_rate = 1e-3;
  double weight_decay = 0;               // the L2 term; AdamW's own decay needs no memory
  std::optional<DType> state_precision;  // of the states; absent: the parameter's
  bool master_weights = false;           // an fp32 copy of each 16-bit parameter
  bool bitsandbytes = false;             // its 32-bit kernels: fp32 states, no temporaries
};

// These accept the names of the tables and those of the libraries: adamw_torch, for_loop, ...
std::optional<OptimizerName> parse_optimizer(std::string_view name);
std::optional<OptimizerForm> parse_optimizer_form(std::string_view name);

// Whether a library's name is that of a 32-bit optimizer of bitsandbytes: paged_adamw_32bit, ...
bool names_bitsandbytes(std::string_view name);
// Whether a name asks for the fused form: "adamw-fused", the Trainer's "adamw_torch_fused".
bool names_fused(std::string_view name);

class OptimizerRun {
 public:
  // Parameters in the order the framework receives them. Adagrad creates its state here, the others
  // in the first step.
  OptimizerRun(const OptimizerOptions& options, std::vector<Tensor> parameters);

  // One step over the parameters that have a gradient.
  void step();

  const std::vector<Tensor>& parameters() const { return parameters_; }

 private:
  struct State {
    bool ready = false;
    Tensor first,
        second;  // momentum | exp_avg, exp_avg_sq | square_avg | sum | row and column variances
    Tensor scales1, scales2;  // of 8-bit states
    Tensor step_count;        // on the device in the fused implementation
    Tensor master;
  };

  using Indices = std::vector<std::size_t>;
  // The lists that the local names of PyTorch's function keep alive between groups; each is freed
  // when the next group rebinds its name.
  struct Lists {
    std::vector<Tensor> decayed, roots, numerators;
  };

  bool decays_gradients() const;
  void prepare(std::size_t i);
  std::vector<Tensor> like_gradients(const Indices& group) const;
  std::vector<Tensor> like_states(const Indices& group) const;
  void step_foreach(const Indices& group, Lists& lists);
  void step_foreach_adafactor(const Indices& group, Lists& lists);
  void step_for_loop(const Indices& parameters);
  void step_for_loop_adafactor(const Indices& parameters);
  std::vector<Indices> groups(const Indices& parameters) const;
  void update(std::size_t i);

  OptimizerOptions options_;
  std::vector<Tensor> parameters_;
  std::vector<State> states_;
  Tensor quantile_maps_[2];
  std::int64_t steps_ = 0;
};

}  // namespace memfathom
