#include "estimator/models/blocks/bert_config.h"

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

constexpr BertNames kAlbertNames{"encoder.albert_layer_groups",
                                 "attention",
                                 "query",
                                 "key",
                                 "value",
                                 "attention.dense",
                                 "attention.LayerNorm",
                                 "ffn",
                                 "ffn_output",
                                 "full_layer_layer_norm"};

// Whether the first of `architectures` is called so.
bool is_named(const Node& config, std::string_view part) {
  const Node* architectures = find_any(config, {"architectures"});
  if (architectures == nullptr || architectures->items().empty()) return false;
  return architectures->items().front().as_string().find(part) != std::string::npos;
}

}  // namespace

BertConfig read_bert_config(const Node& config, const ModelSettings& settings) {
  const std::string& type = config.at("model_type").as_string();
  BertConfig cfg;
  cfg.flavor = type == "distilbert"                ? BertFlavor::kDistilBert
               : type == "albert"                  ? BertFlavor::kAlbert
               : type == "bert" || type == "ernie" ? BertFlavor::kBert
               : type == "electra"                 ? BertFlavor::kElectra
                                                   : BertFlavor::kRoberta;
  const bool distilled = cfg.flavor == BertFlavor::kDistilBert;
  const bool albert = cfg.flavor == BertFlavor::kAlbert;
  cfg.names = distilled ? kDistilNames : albert ? kAlbertNames : kBertNames;
  cfg.hidden = required_count(config, {"hidden_size", "dim"});
  cfg.layers = required_count(config, {"num_hidden_layers", "n_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads", "n_heads"});
  require_divides(config, {"num_attention_heads", "n_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  const bool electra = cfg.flavor == BertFlavor::kElectra;
  cfg.embedding = electra || albert ? count_or(config, {"embedding_size"}, 128) : cfg.hidden;
  cfg.ffn = required_count(config, {"intermediate_size", "hidden_dim"});
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.positions = count_or(config, {"max_position_embeddings"}, 512, kMaxTokens);
  cfg.token_types = distilled ? 0 : count_or(config, {"type_vocab_size"}, 2, kMaxTokens);
  const double usual = albert ? 0 : 0.1;
  cfg.dropout =
      settings.dropout.value_or(probability_or(config, {"hidden_dropout_prob", "dropout"}, usual));
  cfg.projection_dropout = distilled ? 0 : cfg.dropout;
  cfg.output_dropout = albert ? 0 : cfg.dropout;
  cfg.attention_dropout = settings.dropout.value_or(
      probability_or(config, {"attention_probs_dropout_prob", "attention_dropout"}, usual));
  cfg.classifier_dropout = settings.dropout.value_or(probability_or(
      config, {"classifier_dropout", "classifier_dropout_prob", "seq_classif_dropout"},
      distilled ? 0.2
      : albert  ? 0.1
                : cfg.dropout));
  cfg.activation =
      activation_or(config, {"hidden_act", "activation"}, albert ? "gelu_new" : "gelu");
  if (albert) {
    cfg.groups = count_or(config, {"num_hidden_groups"}, 1, cfg.layers);
    cfg.group_blocks = count_or(config, {"inner_group_num"}, 1, kMaxLayers);
  }
  if (type == "ernie" && flag_or(config, {"use_task_id"}, false))
    config.at("use_task_id")
        .refuse(
            "ERNIE's embeddings of tasks are not modelled; record the step with memfathom capture");
  cfg.tied = flag_or(config, {"tie_word_embeddings"}, true);
  cfg.task = task_head(config, settings);
  cfg.outputs = head_outputs(config, cfg.task);
  cfg.discriminates = electra && is_named(config, "ForPreTraining");
  return cfg;
}

}  // namespace memfathom
