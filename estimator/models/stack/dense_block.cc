#include <memory>

#include "estimator/models/stack/keys.h"
#include "estimator/models/stack/layer_types.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

const std::vector<Node>* branches_of(const Node& spec) {
  const Node* type = spec.find("type");
  if (type == nullptr || !type->is_string() || type->as_string() != "concat") return nullptr;
  const Node* branches = spec.find("branches");
  return branches != nullptr && branches->is_list() ? &branches->items() : nullptr;
}

bool is_identity(const Node& branch) { return branch.is_list() && branch.items().empty(); }

bool grows(const Node& spec) {
  const std::vector<Node>* branches = branches_of(spec);
  return branches != nullptr && branches->size() == 2 && is_identity(branches->front()) &&
         !is_identity(branches->back());
}

// torch.cat of one tensor: a copy.
bool copies(const Node& spec) {
  const std::vector<Node>* branches = branches_of(spec);
  return branches != nullptr && branches->size() == 1 && is_identity(branches->front());
}

}  // namespace

std::size_t dense_block_length(std::span<const Node* const> specs) {
  const std::size_t first = !specs.empty() && copies(*specs.front()) ? 1 : 0;
  std::size_t length = first;
  while (length < specs.size() && grows(*specs[length])) ++length;
  return length >= 2 ? length : 0;
}

Layer make_dense_block(StackContext& context, std::span<const Node* const> specs) {
  const bool copied = copies(*specs.front());
  std::vector<std::shared_ptr<const std::vector<Layer>>> units;
  for (const Node* spec : specs.subspan(copied ? 1 : 0)) {
    spec->check_keys({"type", "branches"});
    const std::int64_t before = context.shape[1];
    units.push_back(std::make_shared<const std::vector<Layer>>(
        make_layers(context, spec->at("branches").items().back())));
    context.shape[1] += before;
  }
  return [copied, units](const Tensor& x) {
    std::vector<Tensor> features{x};
    for (const auto& unit : units) {
      const bool whole = features.size() == 1 && !copied;
      features.push_back(run_layers(*unit, whole ? x : cat(features, 1)));
    }
    return cat(features, 1);
  };
}

}  // namespace memfathom
