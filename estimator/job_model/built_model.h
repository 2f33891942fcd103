// BuiltModel: a job's networks in a session: one, or several modules that run as one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/job/job.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// What whoever shards the model wants of its making.
struct BuildOverrides {
  bool deferred = false;         // parameters get their memory later
  std::optional<DType> compute;  // their type instead of the job's, and no autocast
};

struct BuiltModel {
  std::vector<std::unique_ptr<Builder>> builders;  // one per network
  std::unique_ptr<Builder>
      reference;  // of a frozen copy that preference training asks; not counted
  std::unique_ptr<Network> network;

  std::vector<NamedTensor> parameters() const;
  std::vector<Tensor> trainable() const;
  std::int64_t parameter_count() const;
  // Modules that own parameters: a linear's weight and bias are one.
  std::int64_t layer_count() const;
};

// The type of autocast, if any. Adapters whose type is not given are PEFT's, fp32 also on a 16-bit
// base, and the libraries that train such a pair (transformers, diffusers, accelerate) do it under
// autocast to the base's type.
std::optional<DType> autocast_of(const TrainingSpec& training);

// The training keys of the loop that all modules share, which a module may not override.
std::span<const std::string_view> loop_keys();

// Parameters of the whole model, whatever part of it a GPU holds.
std::int64_t count_parameters(const Job& job);

// Builds `job.model`. Throws Error(kInput) for modules that cannot be.
BuiltModel build_model(Session& session, const Job& job, const BuildOverrides& plan,
                       std::vector<std::string>& assumptions);

}  // namespace memfathom
