// Experts: a mixture of gated MLPs, expert by expert over the tokens routed to it (transformers 4),
// or all of them in one grouped product (transformers 5).
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/models/language/feed_forward.h"
#include "kernels/layers/builder.h"

namespace memfathom {

struct ExpertsPlan {
  std::int64_t hidden = 0, ffn = 0;
  std::int64_t experts = 0, per_token = 0;
  Activation activation = Activation::kSilu;
};

// The router's choices depend on data: every expert is given its even share of the tokens.
class Experts {
 public:
  Experts(Builder& builder, const ExpertsPlan& plan);

  Tensor operator()(const Tensor& x) const;

 private:
  ExpertsPlan plan_;
  Linear router_;
  std::vector<GatedMlp> experts_;
};

// As transformers stores them since 5.0: the matrices of all experts in two tensors. Their products
// are grouped kernels over the tokens sorted by expert, every token as often as it has experts.
// They are no linear layers: bitsandbytes and PEFT's "all-linear" pass them by.
class GroupedExperts {
 public:
  GroupedExperts(Builder& builder, const ExpertsPlan& plan);

  Tensor operator()(const Tensor& x) const;

 private:
  ExpertsPlan plan_;
  Linear router_;
  Tensor gate_up_, down_;  // [experts, 2 ffn, hidden], [experts, hidden, ffn]
};

// Throws Error(kInput) on a device that computes: experts are accounts only.
void refuse_to_compute(const Session& session);

}  // namespace memfathom
