#include "estimator/job_model/module_set.h"

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"

namespace memfathom {
namespace {

// What is made in the scope belongs to the part, in its precision.
class PartScope {
 public:
  PartScope(Session& session, const ModulePart& part)
      : module_(session.module, part.index), autocast_(session, part.autocast) {}

 private:
  Scoped<ModuleIndex> module_;
  AutocastScope autocast_;
};

}  // namespace

void ModuleSet::load_batch(std::int64_t size, bool targets) {
  for (ModulePart& part : parts_) {
    const Scoped<ModuleIndex> module(session_.module, part.index);
    part.network->load_batch(part.batch_size.value_or(size), targets && part.trainable);
  }
}

bool ModuleSet::set_length(std::int64_t length) {
  bool any = false;
  for (ModulePart& part : parts_) any = part.network->set_length(length) || any;
  return any;
}

Tensor ModuleSet::loss(Tensor* output) {
  outputs_.clear();
  Tensor total;
  for (ModulePart& part : parts_) {
    const PartScope scope(session_, part);
    if (part.trainable) {
      Tensor loss = part.network->loss(output);
      total = total ? add(total, loss) : std::move(loss);
      continue;
    }
    const Scoped<bool> grad(session_.grad_enabled, session_.grad_enabled && !part.no_grad);
    const Scoped<bool> evaluation(session_.training, false);
    outputs_.push_back(part.network->forward());
  }
  if (!total)
    throw Error(ErrorKind::kInput,
                "no module in model.modules is trainable; set train: full, lora, adapter or last "
                "on at least one");
  return total;
}

Tensor ModuleSet::forward() {
  outputs_.clear();
  for (ModulePart& part : parts_) {
    const PartScope scope(session_, part);
    outputs_.push_back(part.network->forward());
  }
  Tensor last = std::move(outputs_.back());
  outputs_.pop_back();
  return last;
}

// The last part is the one that generates; what stands before it are its encoders.
ModulePart& ModuleSet::generator() { return parts_.back(); }

Tensor ModuleSet::prefill() {
  outputs_.clear();
  for (std::size_t i = 0; i + 1 < parts_.size(); ++i) {
    const PartScope scope(session_, parts_[i]);
    outputs_.push_back(parts_[i].network->forward());
  }
  const PartScope scope(session_, generator());
  return generator().network->prefill();
}

Tensor ModuleSet::decode() {
  const PartScope scope(session_, generator());
  return generator().network->decode();
}

bool ModuleSet::skip_tokens(std::int64_t tokens) {
  return generator().network->skip_tokens(tokens);
}

void ModuleSet::end_generation() {
  outputs_.clear();
  generator().network->end_generation();
}

}  // namespace memfathom
