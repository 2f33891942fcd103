// Every key of every sample, nested ones too: a misspelled one is named, a changed value changes
// the reading, or the key is on the list of harmless ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/yaml_text.h"
#include "estimator/readers/unread_keys.h"
#include "tests/estimator/readers/format_samples.h"
#include "tests/estimator/readers/parsed_value.h"
#include "tests/estimator/telling_keys.h"

namespace memfathom {
namespace {

struct Sample {
  std::string name;
  Node tree;
  FileFormat format;
};

// The samples of unread_keys_test.cc and the files of tests/data/readers.
std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const FormatSample& sample : kFormatSamples)
    all.push_back({sample.name, parse_yaml(sample.yaml, "x.yaml"), sample.format});
  for (const char* name : {"accelerate.yaml", "axolotl.yaml", "deepspeed.json", "fno_ocean.yaml",
                           "litgpt.yaml", "ms_swift.yaml", "nemo_automodel.yaml", "nemo_rl.yaml",
                           "torchtitan.toml", "training_args.json", "verl.yaml"}) {
    Node tree = load_document(data(name));
    const FileFormat format = detect_format(tree);
    all.push_back({name, std::move(tree), format});
  }
  return all;
}

// All that a reader found, in one text.
std::string reading_of(const Node& tree, FileFormat format) {
  try {
    const ParsedFile parsed = read_tree(tree, format);
    std::string text = fmt::format("model {}\n", parsed.base_model);
    for (const KeyChange& change : parsed.settings)
      text += fmt::format("{} {}\n", change.key, to_yaml(change.value));
    for (const std::string& key : parsed.autos) text += "auto " + key + "\n";
    for (const std::string& sentence : parsed.assumptions) text += sentence + "\n";
    for (const std::string& sentence : parsed.not_modelled) text += sentence + "\n";
    for (const UnreadKey& key : parsed.unread)
      text += fmt::format("unread {} {}\n", key.key, key.concerns);
    return text;
  } catch (const Error& error) {
    return fmt::format("refused: {}", error.what());
  }
}

void collect_leaves(const Node& map, const std::string& prefix, std::vector<std::string>& paths) {
  for (const Node& entry : map.entries()) {
    const std::string path = prefix + std::string(entry.key());
    if (entry.key().find('.') != std::string::npos) continue;  // no dotted path leads there
    if (entry.is_map()) {
      collect_leaves(entry, path + ".", paths);
    } else if (!entry.is_null() && !(entry.is_list() && entry.items().empty())) {
      paths.push_back(path);
    }
  }
}

// A harmless section covers what is below it.
bool is_harmless(FileFormat format, std::string path) {
  while (true) {
    if (harmless_reason(format, path)) return true;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return false;
    path.resize(dot);
  }
}

// Whether the key, or a section it stands in, is named as unread.
bool is_named(const std::string& reading, std::string path) {
  while (true) {
    if (reading.find("unread " + path + " ") != std::string::npos) return true;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return false;
    path.resize(dot);
  }
}

Node with_value(const Node& tree, const std::string& path, Node value) {
  Node changed = tree;
  changed.assign(path, std::move(value));
  return changed;
}

Node without(const Node& tree, const std::string& path) {
  Node changed = tree;
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) {
    changed.erase(path);
    return changed;
  }
  Node section = *value_at(tree, path.substr(0, dot));
  section.erase(path.substr(dot + 1));
  changed.assign(path.substr(0, dot), std::move(section));
  return changed;
}

Node other_value(const Node& value) {
  if (value.is_bool()) return Node::boolean(!value.as_bool());
  if (value.is_int()) return Node::integer(2 * value.as_int() + 1);
  if (value.is_number()) return Node::number(value.unchecked_number() + 0.25);
  if (value.is_list()) {
    Node longer = value;
    longer.append(Node::string("zzz"));
    return longer;
  }
  return Node::string("zzz");
}

TEST(GeneratedKeysTest, EveryMisspelledKeyIsNamedOrHarmless) {
  int count = 0;
  for (const Sample& sample : samples()) {
    std::vector<std::string> paths;
    collect_leaves(sample.tree, "", paths);
    for (const std::string& path : paths) {
      const std::size_t start = path.rfind('.') == std::string::npos ? 0 : path.rfind('.') + 1;
      std::string typo = path;
      typo.insert(start, "zz");
      const Node tree = with_value(without(sample.tree, path), typo, *value_at(sample.tree, path));
      const std::string reading = reading_of(tree, sample.format);
      EXPECT_TRUE(is_named(reading, typo) || reading.starts_with("refused: ") ||
                  is_harmless(sample.format, typo))
          << sample.name << ": " << typo << "\n"
          << reading;
      ++count;
    }
  }
  EXPECT_GT(count, 300);
}

TEST(GeneratedKeysTest, EveryChangedValueChangesTheReadingOrIsHarmless) {
  for (const Sample& sample : samples()) {
    const std::string before = reading_of(sample.tree, sample.format);
    std::vector<std::string> paths;
    collect_leaves(sample.tree, "", paths);
    for (const std::string& path : paths) {
      const Node tree = with_value(sample.tree, path, other_value(*value_at(sample.tree, path)));
      EXPECT_TRUE(is_named(before, path) || is_harmless(sample.format, path) ||
                  reading_of(tree, sample.format) != before)
          << sample.name << ": " << path << " is looked up and changes nothing";
    }
  }
}

// A key that is only on a list because its reader asks for it itself is no harmless one.
bool is_harmless_by_itself(FileFormat format, std::string path) {
  while (true) {
    const std::optional<std::string_view> reason = harmless_reason(format, path);
    if (reason) return !reason->starts_with("read");
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return false;
    path.resize(dot);
  }
}

// Keys of the samples for which a senseless value changes nothing, and why that is right.
struct Exception {
  std::string_view key, reason;
};

constexpr Exception kIgnoresNonsense[] = {
    {"max_grad_norm", "clipping is on by default; the norms of the gradients take 0.1 %"},
    {"hf_assets_path", "a path"},
    {"model._target_", "a loader's name; the model is named beside it"},
    {"peft._target_", "a class of adapters, whose rank is read beside it"},
    {"loss_fn._target_", "a loss that is not known as a fused one is counted whole"},
    {"recipe", "a recipe's name"},
    {"selective_ac_option", "leaves the verdict open whatever it is"},
    {"global_batch_size", "the batch of all GPUs; the one of a step is read"},
    {"train_batch_size", "the batch of all GPUs; the one of a step is read"},
    {"zero_optimization.stage", "read with its own section"},
    {"stage3_param_persistence_threshold", "small weights that stay gathered"},
    {"dpo.max_num_steps", "how long it trains"},
    {"TRL: beta", "a number of the loss"},
    {"max_prompt_length", "a part of max_length"},
    {"label_smoothing_factor", "a number below zero is off"},
    {"torch_compile", "a number below zero is off"},
    {"compile", "a number below zero is off"},
    {"apply_lora_to_output", "a number below zero is off"},
    {"context_parallel_size", "a number below two divides nothing"},
    {"gradient_clipping", "norms of the gradients take 0.1 %"},
    {"compute_environment", "where it runs"},
    {"pad_to_sequence_len", "beside sample_packing"},
    {"val_set_size", "evaluates unless it is 0"},
    {"ms_swift.yaml: deepspeed", "a file, read after this one"},
    {"lora_cfg.dim", "beside lora_cfg.enabled: false"},
    {"model.flavor", "the folder of its tokenizer names the model"},
    {"model.name", "the folder of its tokenizer names the model"},
    {"checkpointer._component_", "how weights are loaded"},
    {"checkpointer.checkpoint_dir", "a path"},
    {"checkpointer.checkpoint_files", "paths"},
    {"checkpointer.model_type", "how weights are loaded"},
    {"model.freeze_encoder", "read after the files are merged"},
    {"max_norm", "clipping is on by default; the norms of the gradients take 0.1 %"},
};

bool may_ignore_nonsense(const std::string& path) {  // "sample: key"
  for (const Exception& exception : kIgnoresNonsense) {
    if (path.ends_with(exception.key)) return true;
  }
  return false;
}

TEST(GeneratedKeysTest, NoSenselessValueIsReadPast) {
  int tried = 0;
  for (const Sample& sample : samples()) {
    const std::string before = reading_of(sample.tree, sample.format);
    std::vector<std::string> paths;
    collect_leaves(sample.tree, "", paths);
    for (const std::string& path : paths) {
      if (is_harmless_by_itself(sample.format, path) || is_named(before, path) ||
          may_ignore_nonsense(sample.name + ": " + path))
        continue;
      for (const Node& value : {Node::string("banana"), Node::integer(-7), Node::number(1e30)}) {
        EXPECT_NE(reading_of(with_value(sample.tree, path, value), sample.format), before)
            << sample.name << ": " << path << ": " << to_yaml(value) << " changes nothing";
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 200);
}

// Reasons for which a list may cover any key of a section or a prefix: the whole is named in the
// answer, is read elsewhere, or lies outside of the training step.
bool may_cover_all(std::string_view reason) {
  for (const std::string_view known :
       {"details of settings listed under \"not modelled\"", "details of Megatron's training",
        "read where another key asks for it", "read after the files are merged", "saving",
        "other checkpoints", "logging", "data", "host memory and transfers", "the reference's pass",
        "the inference engine's own", "private to the library"}) {
    if (reason.starts_with(known)) return true;
  }
  return false;
}

TEST(GeneratedKeysTest, NoPatternOfAHarmlessListCoversASettingOfMemory) {
  int tried = 0;
  for (const auto& [format, name] : kEnumNames<FileFormat>) {
    for (const auto& [pattern, reason] : harmless_patterns(format)) {
      if (pattern.find("**") != std::string::npos) {
        EXPECT_TRUE(may_cover_all(reason)) << name << ": " << pattern << ", " << reason;
        continue;
      }
      const std::size_t star = pattern.find('*');
      // In front of a word it stands for any text: the last word says what a key is.
      if (star == std::string::npos || star + 1 != pattern.size()) continue;
      const bool ends_word = star > 0 && (pattern[star - 1] == '_' || pattern[star - 1] == '.');
      for (const std::string_view telling : kTellingKeys) {
        const std::string key =
            pattern.substr(0, star) + (ends_word ? "" : "_") + std::string(telling);
        if (key.find('*') != std::string::npos) continue;
        const std::optional<std::string_view> covered = harmless_reason(format, key);
        EXPECT_TRUE(!covered || may_cover_all(*covered))
            << name << ": " << pattern << " covers " << key;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 1000);
}

// Whether the key, or a section it stands in, is named as one that may change the memory.
bool leaves_open(const Node& tree, FileFormat format, std::string key) {
  const std::string reading = reading_of(tree, format);
  if (reading.starts_with("refused: ")) return true;
  while (true) {
    const std::string mark = "unread " + key + " ";
    const std::size_t at = reading.find(mark);
    if (at != std::string::npos && reading[at + mark.size()] != '\n') return true;
    const std::size_t dot = key.rfind('.');
    if (dot == std::string::npos) return false;
    key.resize(dot);
  }
}

TEST(GeneratedKeysTest, AnAddedSettingOfMemoryLeavesTheVerdictOpenInEverySection) {
  int tried = 0;
  for (const Sample& sample : samples()) {
    if (sample.format == FileFormat::kModelConfig) continue;  // transformers ignores such keys
    for (const std::string_view telling : kTellingKeys) {
      const std::string key(telling);
      EXPECT_TRUE(leaves_open(with_value(sample.tree, key, Node::integer(3)), sample.format, key))
          << sample.name << ": " << key;
      ++tried;
    }
    for (const Node& section : sample.tree.entries()) {
      if (!section.is_map() || section.key().find('.') != std::string::npos) continue;
      for (const std::string_view telling : kTellingAnywhere) {
        const std::string key = std::string(section.key()) + "." + std::string(telling);
        const std::optional<std::string_view> covered = harmless_reason(sample.format, key);
        EXPECT_TRUE((covered && may_cover_all(*covered)) ||
                    leaves_open(with_value(sample.tree, key, Node::integer(3)), sample.format, key))
            << sample.name << ": " << key;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 500);
}

// Settings of the libraries, by the names they have there: no pattern, wherever its star is, may
// take one of them for harmless ("*_save" took modules_to_save).
constexpr std::string_view kLibrarySettings[] = {
    "modules_to_save",
    "lora_modules_to_save",
    "additional_target",
    "trainable_parameters",
    "freeze_parameters",
    "unfrozen_parameters",
    "use_dora",
    "load_in_4bit",
    "load_in_8bit",
    "quantization_bit",
    "quant_bits",
    "bnb_4bit_quant_storage",
    "gradient_checkpointing",
    "micro_batch_size",
    "cutoff_len",
    "sequence_len",
    "max_seq_length",
    "num_generations",
    "max_completion_length",
    "use_vllm",
    "attn_implementation",
    "use_ema",
    "train_text_encoder",
    "blocks_to_swap",
    "network_dim",
    "network_module",
    "image_max_pixels",
    "max_pixels",
    "torch_compile",
    "use_liger_kernel",
    "sequence_parallel_size",
    "expert_parallel_size",
    "tensor_parallel_size",
    "context_parallel_size",
    "num_experts",
    "hidden_size",
    "vocab_size",
    "ref_model",
    "teacher_model",
    "critic_model",
    "activation_offloading",
    "optimizer_type",
};

TEST(GeneratedKeysTest, NoListTakesASettingOfALibraryForHarmless) {
  for (const auto& [format, name] : kEnumNames<FileFormat>) {
    if (format == FileFormat::kModelConfig) continue;
    for (const std::string_view key : kLibrarySettings) {
      const std::optional<std::string_view> covered = harmless_reason(format, key);
      EXPECT_TRUE(!covered || may_cover_all(*covered)) << name << ": " << key << ", " << *covered;
    }
  }
}

// A section that no reader knows is judged by its name: its keys may be called anything.
TEST(GeneratedKeysTest, AnUnknownSectionAboutMemoryLeavesTheVerdictOpen) {
  int tried = 0;
  for (const Sample& sample : samples()) {
    if (sample.format == FileFormat::kModelConfig) continue;
    for (const std::string_view word :
         {"lora", "quantization", "sharding", "offload", "precision", "adapter"}) {
      for (const char* rest : {".zz", ".deeper.zz"}) {
        const std::string key = std::string(word) + "_zz" + rest;
        EXPECT_TRUE(leaves_open(with_value(sample.tree, key, Node::integer(3)), sample.format, key))
            << sample.name << ": " << key;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 200);
}

}  // namespace
}  // namespace memfathom
