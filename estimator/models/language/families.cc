#include "estimator/models/language/families.h"

#include <algorithm>
#include <array>

#include "estimator/models/language/bert.h"
#include "estimator/models/language/bloom.h"
#include "estimator/models/language/falcon.h"
#include "estimator/models/language/gpt2.h"
#include "estimator/models/language/gpt_neox.h"
#include "estimator/models/language/llama.h"
#include "estimator/models/language/opt.h"
#include "estimator/models/language/phi.h"
#include "estimator/models/language/qwen.h"
#include "estimator/models/language/t5.h"

namespace memfathom {
namespace {

struct Family {
  std::string_view model_type;
  std::unique_ptr<Network> (*make)(Builder&, const Node&, const ModelSettings&);
};

constexpr Family kFamilies[] = {
    {"bert", make_bert},        {"bloom", make_bloom},      {"camembert", make_bert},
    {"distilbert", make_bert},  {"falcon", make_falcon},    {"gemma", make_llama},
    {"gemma2", make_llama},     {"gpt2", make_gpt2},        {"gpt_neox", make_gpt_neox},
    {"granite", make_llama},    {"llama", make_llama},      {"mistral", make_llama},
    {"mixtral", make_llama},    {"olmo", make_llama},       {"olmo2", make_llama},
    {"opt", make_opt},          {"phi", make_phi},          {"phi3", make_llama},
    {"qwen", make_qwen},        {"qwen2", make_llama},      {"qwen3", make_llama},
    {"qwen3_moe", make_llama},  {"roberta", make_bert},     {"t5", make_t5},
    {"xlm-roberta", make_bert}, {"gpt_bigcode", make_gpt2},
};

}  // namespace

std::unique_ptr<Network> make_language_model(Builder& builder, const Node& config,
                                             const ModelSettings& settings) {
  const Node* type = config.find("model_type");
  if (type == nullptr || !type->is_string()) return nullptr;
  for (const Family& family : kFamilies) {
    if (family.model_type != type->as_string()) continue;
    std::unique_ptr<Network> made = family.make(builder, config, settings);
    builder.finish();
    return made;
  }
  return nullptr;
}

std::vector<std::string_view> language_model_types() {
  std::vector<std::string_view> types;
  for (const Family& family : kFamilies) types.push_back(family.model_type);
  std::sort(types.begin(), types.end());
  return types;
}

}  // namespace memfathom
