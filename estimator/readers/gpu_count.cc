#include "estimator/readers/gpu_count.h"

#include <algorithm>

#include "estimator/readers/parsed_file.h"

namespace memfathom {
namespace {

bool is_sharded(const Node& document) {
  const Node* stage = value_at(document, "parallel.zero_stage");
  const Node* fsdp = value_at(document, "parallel.fsdp");
  return (stage != nullptr && is_on(*stage)) || (fsdp != nullptr && is_on(*fsdp));
}

}  // namespace

bool shards_among_unknown(const Node& document) {
  return is_sharded(document) && value_at(document, "parallel.num_gpus") == nullptr;
}

void assume_gpus(const Node& document, std::vector<std::string>& assumptions) {
  const bool is_said = std::any_of(
      assumptions.begin(), assumptions.end(),
      [](const std::string& one) { return one.find("(--num-gpus)") != std::string::npos; });
  if (is_said || !shards_among_unknown(document)) return;
  assumptions.emplace_back(
      "no file says how many GPUs there are: the fewest are counted, among which sharding divides "
      "the least (--num-gpus)");
}

}  // namespace memfathom
