#include "estimator/models/families/language/families.h"

#include <algorithm>
#include <array>

#include "estimator/models/blocks/llama/llama.h"
#include "estimator/models/blocks/llama/llama_variant.h"
#include "estimator/models/families/language/bart.h"
#include "estimator/models/families/language/bert.h"
#include "estimator/models/families/language/bloom.h"
#include "estimator/models/families/language/deberta.h"
#include "estimator/models/families/language/falcon.h"
#include "estimator/models/families/language/gpt2.h"
#include "estimator/models/families/language/gpt_neox.h"
#include "estimator/models/families/language/litgpt.h"
#include "estimator/models/families/language/modernbert.h"
#include "estimator/models/families/language/opt.h"
#include "estimator/models/families/language/phi.h"
#include "estimator/models/families/language/qwen.h"
#include "estimator/models/families/language/t5.h"

namespace memfathom {
namespace {

struct LanguageFamily {
  std::string_view model_type;
  std::unique_ptr<Network> (*make)(Builder&, const Node&, const ModelSettings&);
};

constexpr LanguageFamily kFamilies[] = {
    {"bart", make_bart},
    {"bert", make_bert},
    {"bloom", make_bloom},
    {"camembert", make_bert},
    {"deberta-v2", make_deberta},
    {"distilbert", make_bert},
    {"electra", make_bert},
    {"falcon", make_falcon},
    {"gpt2", make_gpt2},
    {"gpt_bigcode", make_gpt2},
    {"gpt_neox", make_gpt_neox},
    {"mbart", make_bart},
    {"modernbert", make_modernbert},
    {"opt", make_opt},
    {"phi", make_phi},
    {"qwen", make_qwen},
    {"roberta", make_bert},
    {"t5", make_t5},
    {"whisper", make_bart},
    {"xlm-roberta", make_bert},
};

std::unique_ptr<Network> (*maker_of(std::string_view type))(Builder&, const Node&,
                                                            const ModelSettings&) {
  for (const LanguageFamily& family : kFamilies) {
    if (family.model_type == type) return family.make;
  }
  const std::vector<std::string_view> kin = llama_variant_types();
  return std::find(kin.begin(), kin.end(), type) != kin.end() ? make_llama : nullptr;
}

}  // namespace

std::unique_ptr<Network> make_language_model(Builder& builder, const Node& config,
                                             const ModelSettings& settings) {
  const Node* type = config.find("model_type");
  if (type == nullptr || !type->is_string()) return nullptr;
  const auto make = maker_of(type->as_string());
  if (make == nullptr) return nullptr;
  if (settings.library == ModelLibrary::kLitgpt) return make_litgpt(builder, config, settings);
  std::unique_ptr<Network> made = make(builder, config, settings);
  builder.finish();
  return made;
}

std::vector<std::string_view> language_model_types() {
  std::vector<std::string_view> types = llama_variant_types();
  for (const LanguageFamily& family : kFamilies) types.push_back(family.model_type);
  std::sort(types.begin(), types.end());
  return types;
}

}  // namespace memfathom
