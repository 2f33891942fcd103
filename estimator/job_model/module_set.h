// ModuleSet: several networks that one training step runs: frozen ones for their outputs, learning
// ones for their losses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/dtype.h"
#include "kernels/framework/layers/network.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

struct ModulePart {
  std::unique_ptr<Network> network;
  ModuleIndex index = 0;  // its line in the ledger
  bool trainable = true;
  bool no_grad = false;
  std::optional<DType> autocast;
  std::optional<std::int64_t> batch_size;  // its own, where it has one
};

class ModuleSet final : public Network {
 public:
  ModuleSet(Session& session, std::vector<ModulePart> parts)
      : session_(session), parts_(std::move(parts)) {}

  void load_batch(std::int64_t size, bool targets) override;
  bool set_length(std::int64_t length) override;
  // The parts in their order; losses are summed. Outputs of parts that do not learn live until the
  // next call, since they are inputs of others.
  Tensor loss(Tensor* output) override;
  Tensor forward() override;
  Tensor prefill() override;
  Tensor decode() override;
  bool skip_tokens(std::int64_t tokens) override;
  void end_generation() override;

 private:
  ModulePart& generator();

  Session& session_;
  std::vector<ModulePart> parts_;
  std::vector<Tensor> outputs_;
};

}  // namespace memfathom
