// PreferenceNetwork: preference training (DPO) around a language model: pairs of answers, and what
// a reference says of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/dtype.h"
#include "estimator/job/job.h"
#include "kernels/framework/layers/network.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

struct PreferenceReference {
  Reference kind = Reference::kNone;
  std::unique_ptr<Network> network;  // kModel: a frozen copy
  ModuleIndex module = 0;
};

class PreferenceNetwork final : public Network {
 public:
  PreferenceNetwork(Session& session, std::unique_ptr<Network> policy,
                    PreferenceReference reference)
      : session_(session), policy_(std::move(policy)), reference_(std::move(reference)) {}

  // A sample is two sequences, the chosen answer and the rejected one.
  void load_batch(std::int64_t size, bool targets) override;
  bool set_length(std::int64_t length) override;
  Tensor loss(Tensor* output) override;
  Tensor forward() override { return policy_->forward(); }

 private:
  Tensor reference_scores();

  Session& session_;
  std::unique_ptr<Network> policy_;
  PreferenceReference reference_;
  std::int64_t pairs_ = 0;
  Tensor precomputed_;
};

}  // namespace memfathom
