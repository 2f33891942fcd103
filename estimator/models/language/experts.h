// Experts: a mixture of gated MLPs as transformers' eager code runs it: expert by expert over the
// tokens routed to it.
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

}  // namespace memfathom
