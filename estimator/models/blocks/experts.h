// Experts: a mixture of gated MLPs, expert by expert over the tokens routed to it (transformers 4),
// or all of them in one grouped product (transformers 5).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/blocks/routing.h"
#include "kernels/framework/layers/builder.h"

namespace memfathom {

// An MLP that every token passes beside its experts.
enum class SharedExpert : std::uint8_t {
  kNone,
  kGated,  // Qwen 2: times a sigmoid of the token
  kPlain,  // DeepSeek
  kFused,  // Granite: gate and up are one matrix
};

enum class ExpertForm : std::uint8_t {
  kGated,
  kClampedWithBias,  // gpt-oss: gate and up clamped, every product with a bias
};

struct ExpertsConfig {
  std::int64_t hidden = 0, ffn = 0;
  std::int64_t experts = 0, per_token = 0;
  Activation activation = Activation::kSilu;
  ExpertForm form = ExpertForm::kGated;
  RouterConfig router;
  bool mixtral_names = false;
  std::int64_t first_layer = 0;  // layers before this have no experts
  SharedExpert shared = SharedExpert::kNone;
  std::int64_t shared_ffn = 0;
};

// The router's choices depend on data: every expert is given its even share of the tokens.
class Experts {
 public:
  Experts(Builder& builder, const ExpertsConfig& cfg);

  Tensor operator()(const Tensor& x) const;

 private:
  ExpertsConfig config_;
  Router router_;
  std::vector<GatedMlp> experts_;
};

// The matrices of all experts, [experts, out, in]: whole, or in 8 or 4 bits with their scales.
struct ExpertMatrices {
  Tensor weight, scales;
  std::int64_t out = 0;
  bool packed = false;
};

// As transformers stores them since 5.0: the matrices of all experts in two tensors. Their products
// are grouped kernels over the tokens sorted by expert, every token as often as it has experts.
// They are no linear layers: bitsandbytes and PEFT's "all-linear" pass them by.
class GroupedExperts {
 public:
  GroupedExperts(Builder& builder, const ExpertsConfig& cfg);

  Tensor operator()(const Tensor& x) const;

 private:
  ExpertsConfig config_;
  Router router_;
  ExpertMatrices gate_up_, down_;    // [experts, 2 ffn, hidden], [experts, hidden, ffn]
  Tensor gate_up_bias_, down_bias_;  // of a row for each expert, where the form has them
};

// The experts of a block and what every token passes beside them.
class SparseMlp {
 public:
  // `grouped`: the experts as transformers 5 stores them.
  SparseMlp(Builder& builder, const ExpertsConfig& cfg, bool grouped);

  Tensor operator()(const Tensor& x) const;

 private:
  Tensor routed(const Tensor& x) const { return experts_ ? (*experts_)(x) : (*grouped_)(x); }

  ExpertsConfig config_;
  std::optional<Experts> experts_;
  std::optional<GroupedExperts> grouped_;
  GatedMlp shared_;
  FusedGatedMlp fused_;
  Linear shared_gate_;
};

// The buffer of a router that has one.
void make_correction(Builder& builder, const ExpertsConfig& cfg, Router& router);

// Throws Error(kInput) on a device that computes: experts are accounts only.
void reject_real_device(const Session& session);

}  // namespace memfathom
