// BertConfig: sizes and names of BERT's families, read from their configs.
#pragma once

#include <cstdint>
#include <string>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "estimator/models/blocks/task_head.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

enum class BertFlavor : std::uint8_t { kBert, kRoberta, kDistilBert, kElectra, kAlbert };

// Names of one block's matrices and norms, which LoRA targets and checkpoints use.
struct BertNames {
  const char* stack;
  const char* attention;
  const char *q, *k, *v;
  const char *output, *output_norm;
  const char *first, *second, *second_norm;
};

struct BertConfig {
  BertFlavor flavor = BertFlavor::kBert;
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0, positions = 0,
               token_types = 0;
  std::int64_t embedding = 0;                 // width of the tables: `hidden`, but for ELECTRA
  std::int64_t groups = 0, group_blocks = 1;  // ALBERT: layers of a group are the same blocks
  TaskHead task = TaskHead::kVocabulary;
  std::int64_t outputs = 0;    // of a head that is not over the vocabulary
  bool discriminates = false;  // ELECTRA: which tokens were replaced
  // DistilBERT drops nothing after its attention, ALBERT nothing after its feed-forward part.
  double dropout = 0.1, projection_dropout = 0.1, output_dropout = 0.1, attention_dropout = 0.1,
         classifier_dropout = 0.1;
  bool tied = true;
  Activation activation = Activation::kGelu;
  BertNames names{};
};

BertConfig read_bert_config(const Node& config, const ModelSettings& settings);

}  // namespace memfathom
