#include "estimator/models/blocks/bert_plan.h"

#include "estimator/models/blocks/config_reader.h"

namespace memfathom {
namespace {

constexpr BertNames kBertNames{"encoder.layer",
                               "attention.self",
                               "query",
                               "key",
                               "value",
                               "attention.output.dense",
                               "attention.output.LayerNorm",
                               "intermediate.dense",
                               "output.dense",
                               "output.LayerNorm"};
constexpr BertNames kDistilNames{
    "transformer.layer", "attention",     "q_lin",    "k_lin",    "v_lin",
    "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"};

// Whether the first of `architectures` is called so.
bool is_named(const Node& config, std::string_view part) {
  const Node* architectures = find_any(config, {"architectures"});
  if (architectures == nullptr || architectures->items().empty()) return false;
  return architectures->items().front().as_string().find(part) != std::string::npos;
}

}  // namespace

std::int64_t sequence_labels(const Node& config) {
  if (!is_named(config, "SequenceClassification")) return 0;
  if (const Node* count = find_any(config, {"num_labels"})) return count->as_int(1, kMostWidth);
  const Node* names = find_any(config, {"id2label"});
  return names != nullptr && !names->entries().empty()
             ? static_cast<std::int64_t>(names->entries().size())
             : 2;
}

BertPlan read_bert_plan(const Node& config, const ModelSettings& settings) {
  const std::string& type = config.at("model_type").as_string();
  BertPlan plan;
  plan.flavor = type == "distilbert" ? BertFlavor::kDistilBert
                : type == "bert"     ? BertFlavor::kBert
                : type == "electra"  ? BertFlavor::kElectra
                                     : BertFlavor::kRoberta;
  const bool distilled = plan.flavor == BertFlavor::kDistilBert;
  plan.names = distilled ? kDistilNames : kBertNames;
  plan.hidden = required_count(config, {"hidden_size", "dim"});
  plan.layers = required_count(config, {"num_hidden_layers", "n_layers"}, kMostLayers);
  plan.heads = required_count(config, {"num_attention_heads", "n_heads"});
  require_divides(config, {"num_attention_heads", "n_heads"}, plan.heads, plan.hidden,
                  "hidden_size");
  const bool electra = plan.flavor == BertFlavor::kElectra;
  plan.embedding = electra ? count_or(config, {"embedding_size"}, 128) : plan.hidden;
  plan.ffn = required_count(config, {"intermediate_size", "hidden_dim"});
  plan.vocabulary = required_count(config, {"vocab_size"}, kMostTokens);
  plan.positions = count_or(config, {"max_position_embeddings"}, 512, kMostTokens);
  plan.token_types = distilled ? 0 : count_or(config, {"type_vocab_size"}, 2, kMostTokens);
  plan.dropout =
      settings.dropout.value_or(probability_or(config, {"hidden_dropout_prob", "dropout"}, 0.1));
  plan.projection_dropout = distilled ? 0 : plan.dropout;
  plan.attention_dropout = settings.dropout.value_or(
      probability_or(config, {"attention_probs_dropout_prob", "attention_dropout"}, 0.1));
  plan.classifier_dropout = settings.dropout.value_or(probability_or(
      config, {"classifier_dropout", "seq_classif_dropout"}, distilled ? 0.2 : plan.dropout));
  plan.activation = activation_or(config, {"hidden_act", "activation"}, "gelu");
  plan.tied = flag_or(config, {"tie_word_embeddings"}, true);
  plan.labels = sequence_labels(config);
  plan.discriminates = electra && is_named(config, "ForPreTraining");
  return plan;
}

}  // namespace memfathom
