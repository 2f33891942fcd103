#include "estimator/readers/parsed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "core/error.h"
#include "core/key_recorder.h"
#include "core/lowercase.h"
#include "estimator/readers/formats.h"
#include "estimator/readers/script_model.h"
#include "estimator/readers/strange_values.h"
#include "estimator/readers/unread_keys.h"

namespace memfathom {
namespace {

constexpr auto kOptimizers = std::to_array<std::pair<std::string_view, std::string_view>>({
    // ours, the Trainer's: the first of each is what is written
    {"adamw", "adamw_torch"},
    {"adamw", "adamw_hf"},
    {"adam", "adam"},
    {"adamw-fused", "adamw_torch_fused"},
    {"adamw-fused", "adamw_apex_fused"},
    {"adamw_32bit", "paged_adamw_32bit"},
    {"adamw_32bit", "paged_adamw"},
    {"adamw", "schedule_free_adamw"},
    {"adamw", "stable_adamw"},
    {"adamw", "optimi_adamw"},
    {"adamw-8bit", "adamw_bnb_8bit"},
    {"adamw-8bit", "adamw_8bit"},
    {"adamw-8bit", "paged_adamw_8bit"},
    {"adamw-8bit", "adamw_torch_8bit"},
    {"adamw-8bit", "ao_adamw_8bit"},
    {"adamw-8bit", "ao_adamw_fp8"},
    {"adafactor", "adafactor"},
    {"sgd", "sgd"},
    {"rmsprop", "rmsprop"},
    {"adagrad", "adagrad"},
    {"lion_32bit", "lion_32bit"},
    {"lion", "lion"},
    {"lion", "lion_pytorch"},
    {"lion_32bit", "paged_lion_32bit"},
});

// Those whose states have another size; ours, theirs.
constexpr auto kNearOptimizers = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"adamw-8bit", "adamw_torch_4bit"},
    {"adamw-8bit", "ao_adamw_4bit"},
    {"lion", "lion_8bit"},
    {"lion", "paged_lion_8bit"},
    {"lion", "muon"},
    {"lion", "dion"},
});

// A name, or a section that has one: {name: adamw, lr: 1e-4}, {_target_: torch.optim.AdamW}.
std::string optimizer_in(const Node& value) {
  if (!value.is_map()) return value.as_string();
  for (const char* key : {"name", "type", "_target_", "class_path"}) {
    const std::string name = text_at(value, key);
    if (!name.empty()) return name.substr(name.rfind('.') + 1);
  }
  return "";
}

bool is_word(const Node& value, std::initializer_list<std::string_view> words) {
  if (!value.is_string()) return false;
  const std::string text = lowercase(value.as_string());
  return std::find(words.begin(), words.end(), text) != words.end();
}

// "500_000", a number for YAML 1.1.
Node ungrouped(const Node& value) {
  if (!value.is_string()) return value;
  std::string digits = value.as_string();
  if (digits.size() > 20 || digits.find_first_not_of("0123456789_") != std::string::npos ||
      digits.find('_') == std::string::npos)
    return value;
  std::erase(digits, '_');
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return failure == std::errc{} && end == digits.data() + digits.size() ? Node::integer(number)
                                                                        : value;
}

// A value that a switch cannot have is named: what it does is not known.
void check_switch(const Field& field, const Node& value, ParsedFile& parsed) {
  const bool is_known =
      is_switch(value) ||
      (field.kind == FieldKind::kCheckpointing &&
       is_word(value, {"full", "selective", "unsloth", "offload", "offload_disk", "disk", "legacy",
                       "block", "per_layer", "uniform"})) ||
      (field.kind == FieldKind::kOffload && is_word(value, {"cpu", "disk", "nvme", "legacy"})) ||
      (field.kind == FieldKind::kFlash && is_word(value, {"fa2", "fa3", "flash_attention_2"}));
  if (is_known) return;
  const std::string_view concern =
      field.kind == FieldKind::kCheckpointing
          ? "checkpointing"
          : concern_of(field.job.substr(field.job.rfind('.') + 1), Node::integer(2));
  leave_open(field.file, concern.empty() ? "memory" : concern,
             fmt::format("{}: \"{}\" is {}, which is neither on nor off", parsed.file, field.file,
                         value.shown()),
             parsed);
}

Node from_file_value(const Field& field, const Node& value, ParsedFile& parsed) {
  if (field.kind == FieldKind::kCheckpointing || field.kind == FieldKind::kFlag ||
      field.kind == FieldKind::kFlash || field.kind == FieldKind::kOffload)
    check_switch(field, value, parsed);
  switch (field.kind) {
    case FieldKind::kCheckpointing: return Node::string(is_on(value) ? "full" : "none");
    case FieldKind::kFlash: return is_on(value) ? Node::string("flash") : Node();
    case FieldKind::kFlag: return Node::boolean(is_on(value));
    case FieldKind::kGibibytes: {
      constexpr double kMaxGibibytes = 1024;
      const double size = value.as_number(0, 1e9);
      if (size > kMaxGibibytes)
        value.refuse(fmt::format("{} GiB is more than any GPU has; {}?", size, size / 1024));
      return Node::string(fmt::format("{}GiB", size));
    }
    case FieldKind::kOptimizer: {
      std::string name = lowercase(optimizer_in(value));
      if (name.empty()) return {};
      if (name.starts_with("optimizernames.")) name.erase(0, 15);
      if (name.find("paged") != std::string::npos)
        parsed.not_modelled.emplace_back(
            "paged optimizer states are counted as if they stayed on the GPU");
      for (const auto& [ours, theirs] : kOptimizers) {
        if (name == theirs || name == ours) return Node::string(std::string(ours));
      }
      std::string_view near = "adamw";
      for (const auto& [ours, theirs] : kNearOptimizers) {
        if (name == theirs) near = ours;
      }
      leave_open(field.file, "optimizer",
                 fmt::format("{}: the states of the optimizer {}; they are counted as {}'s",
                             parsed.file, name, near),
                 parsed);
      return Node::string(std::string(near));
    }
    // Any way of offloading, where it has a name.
    case FieldKind::kOffload: return Node::string(is_on(value) ? "cpu" : "none");
    case FieldKind::kDevice: {
      const std::string& device = value.as_string();
      if (device == "nvme")
        parsed.not_modelled.emplace_back(
            "offloading to NVMe is counted as offloading to host memory");
      if (device != "none" && device != "cpu" && device != "nvme")
        value.refuse("it must be cpu, nvme or none");
      return Node::string(device == "none" ? "none" : "cpu");
    }
    case FieldKind::kPlain: return ungrouped(value);
  }
  return value;
}

[[noreturn]] void reject_unknown_format(const Node& tree) {
  const bool is_index = value_at(tree, "weight_map") != nullptr;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {}", tree.file(),
                          is_index ? "this is the index of a model's weights; name its folder, "
                                     "which has a config.json"
                                   : "nothing in it is known here: it is neither a job "
                                     "(docs/jobs.md) nor one of the files of docs/your-files.md"));
}

}  // namespace

const char* to_string(FileFormat format) { return enum_name(format).data(); }

void set_packed(std::initializer_list<std::string_view> keys, ParsedFile& parsed) {
  for (const std::string_view key : keys) {
    if (!is_true_at(parsed.content, key)) continue;
    parsed.set("training.lengths", Node::string("fixed"));
    return;
  }
}

bool is_switch(const Node& value) {
  if (value.is_number()) return value.unchecked_number() == 0 || value.unchecked_number() == 1;
  return value.is_bool() || value.is_null() || value.is_map() ||
         is_word(value, {"", "true", "yes", "on", "y", "1", "enable", "false", "no", "off", "n",
                         "none", "0", "disable", "auto"});
}

bool is_on(const Node& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_number()) return value.unchecked_number() != 0;
  return !value.is_null() && !is_word(value, {"", "false", "no", "off", "none", "n", "disable"});
}

void drop_settings(std::string_view key, ParsedFile& parsed) {
  std::erase_if(parsed.settings, [&](const KeyChange& change) {
    return change.key.starts_with(key) &&
           (change.key.size() == key.size() || change.key[key.size()] == '.');
  });
}

void leave_open(std::string_view key, std::string_view concerns, std::string sentence,
                ParsedFile& parsed) {
  const Node* value = value_at(parsed.content, key);
  if (value == nullptr) return;
  parsed.named_sections.emplace_back(key);
  withhold(value->path(), concerns, std::move(sentence), parsed);
}

void withhold(std::string_view named, std::string_view concerns, std::string sentence,
              ParsedFile& parsed) {
  parsed.not_modelled.push_back(std::move(sentence));
  parsed.named_sections.emplace_back(named);
  parsed.unread.push_back({parsed.file, std::string(named), std::string(concerns), "", "", ""});
}

namespace {

// What a field of the job may change, in the words of UnreadKey.
std::string_view concern_of_field(const Field& field) {
  const std::string_view concern =
      concern_of(field.job.substr(field.job.rfind('.') + 1), Node::integer(2));
  return concern.empty() ? "memory" : concern;
}

}  // namespace

void read_fields(std::span<const Field> fields, ParsedFile& parsed) {
  for (const Field& field : fields) {
    const Node* value = value_at(parsed.content, field.file);
    if (value == nullptr) continue;
    const auto decided =
        std::find_if(parsed.settings.begin(), parsed.settings.end(),
                     [&](const KeyChange& change) { return change.key == field.job; });
    if (decided != parsed.settings.end()) {  // another spelling of the same
      const bool differs =
          value->is_int() && decided->value.is_int() && !decided->value.same_value(*value);
      if (differs)
        parsed.unread.push_back(
            {parsed.file, value->path(), std::string(concern_of_field(field)), ""});
      continue;
    }
    // Hydra's and OmegaConf's references to other keys.
    if (value->is_string() && value->as_string().starts_with("${")) {
      parsed.unread.push_back(
          {parsed.file, value->path(), std::string(concern_of_field(field)), ""});
      continue;
    }
    if (value->is_string() && value->as_string() == "auto") {
      parsed.autos.emplace_back(field.file);
      continue;
    }
    Node ours = from_file_value(field, *value, parsed);
    if (!ours.is_null()) parsed.set(field.job, std::move(ours));
  }
}

void list_not_modelled(std::span<const std::string_view> keys, ParsedFile& parsed) {
  for (const std::string_view key : keys) {
    const Node* value = value_at(parsed.content, key);
    // Work that is divided by one is not divided.
    const bool divides =
        key.ends_with("_size") || key.ends_with("_degree") || key.ends_with("_dim");
    if (value == nullptr || (value->is_bool() && !value->as_bool()) ||
        (value->is_number() && value->unchecked_number() <= (divides ? 1 : 0)))
      continue;
    if ((value->is_string() && (value->as_string().empty() || value->as_string() == "auto")) ||
        (value->is_list() && value->items().empty()) ||
        (value->is_map() && value->entries().empty()))
      continue;
    const std::string_view concern = concern_of(value->key(), Node::string("set"));
    leave_open(key, concern.empty() ? "memory" : concern,
               fmt::format("{}: \"{}\" is {}", parsed.file, key, value->shown()), parsed);
  }
}

Node to_file_value(FieldKind kind, const Node& value) {
  switch (kind) {
    case FieldKind::kCheckpointing:
      return Node::boolean(value.is_bool() ? value.as_bool() : value.as_string() != "none");
    case FieldKind::kFlash: return Node::boolean(value.as_string() == "flash");
    case FieldKind::kGibibytes: {
      const double gibibytes = static_cast<double>(value.as_bytes().count()) / (1 << 30);
      return Node::number(gibibytes);
    }
    case FieldKind::kOptimizer: {
      const std::string name = value.is_map() ? value.at("name").as_string() : value.as_string();
      for (const auto& [ours, theirs] : kOptimizers) {
        if (name == ours) return Node::string(std::string(theirs));
      }
      return Node::string(name);
    }
    case FieldKind::kOffload: return Node::boolean(value.as_string() == "cpu");
    case FieldKind::kDevice:
    case FieldKind::kFlag:
    case FieldKind::kPlain: break;
  }
  return value;
}

FileFormat detect_format(const Node& tree) {
  const auto has = [&](std::string_view key) { return value_at(tree, key) != nullptr; };
  if (!tree.is_map()) tree.refuse("a job or a training configuration is a map of keys and values");
  if (has("peft_type")) return FileFormat::kAdapter;
  if (has("compute_environment") || has("distributed_type")) return FileFormat::kAccelerate;
  if (is_verl(tree)) return FileFormat::kVerl;
  if (is_nemo_rl(tree)) return FileFormat::kNemoRl;
  if (is_nemo_automodel(tree)) return FileFormat::kNemoAutomodel;
  if (is_torchtitan(tree)) return FileFormat::kTorchtitan;
  if (is_litgpt(tree)) return FileFormat::kLitgpt;
  if (is_ms_swift(tree)) return FileFormat::kMsSwift;
  if (has("zero_optimization") || has("train_micro_batch_size_per_gpu") || has("bf16.enabled") ||
      has("fp16.enabled") || (has("train_batch_size") && has("optimizer.params")) ||
      (has("train_batch_size") && has("steps_per_print")))
    return FileFormat::kDeepSpeed;
  if (has("base_model") || (has("micro_batch_size") && has("sequence_len")))
    return FileFormat::kAxolotl;
  if (is_llama_factory(tree)) return FileFormat::kLlamaFactory;
  if (is_torchtune(tree)) return FileFormat::kTorchtune;
  if (has("per_device_train_batch_size") || (has("output_dir") && !has("model")) ||
      (has("model_name_or_path") &&
       (has("dataset_name") || has("learning_rate") || has("use_peft"))))
    return FileFormat::kTrainingArguments;
  // Alone in a file, a section of FSDP is that of accelerate.
  if (has("fsdp_config.fsdp_sharding_strategy")) return FileFormat::kAccelerate;
  if (has("model_type") || has("_class_name") || has("architectures"))
    return FileFormat::kModelConfig;
  if (is_script_model(tree.find("model"))) return FileFormat::kTrainYaml;
  static constexpr std::array<std::string_view, 6> kJobKeys{"id",       "model",     "training",
                                                            "parallel", "allocator", "target"};
  const bool only_ours =
      std::all_of(tree.entries().begin(), tree.entries().end(), [](const Node& entry) {
        return std::find(kJobKeys.begin(), kJobKeys.end(), entry.key()) != kJobKeys.end();
      });
  if (only_ours) return FileFormat::kJob;
  const Node* model = tree.find("model");
  const auto says = [&](std::string_view key) {
    return model != nullptr && model->is_map() && model->find(key) != nullptr;
  };
  if (says("preset") || says("config") || says("layers") || says("modules") || says("trace") ||
      says("parameters") || says("family"))
    return FileFormat::kJob;
  for (const Field& field : train_yaml_fields()) {
    if (has(field.file)) return FileFormat::kTrainYaml;
  }
  const bool partly_ours =
      std::any_of(tree.entries().begin(), tree.entries().end(), [](const Node& entry) {
        return std::find(kJobKeys.begin(), kJobKeys.end(), entry.key()) != kJobKeys.end();
      });
  if (!partly_ours) reject_unknown_format(tree);
  return FileFormat::kJob;
}

std::span<const Field> fields_of(FileFormat format) {
  switch (format) {
    case FileFormat::kTrainingArguments: return training_arguments_fields();
    case FileFormat::kDeepSpeed: return deepspeed_fields();
    case FileFormat::kAccelerate: return accelerate_fields();
    case FileFormat::kAxolotl: return axolotl_fields();
    case FileFormat::kLlamaFactory: return llama_factory_fields();
    case FileFormat::kTorchtune: return torchtune_fields();
    case FileFormat::kLitgpt: return litgpt_fields();
    case FileFormat::kMsSwift: return ms_swift_fields();
    case FileFormat::kVerl: return verl_fields();
    case FileFormat::kNemoAutomodel: return nemo_automodel_fields();
    case FileFormat::kNemoRl: return nemo_rl_fields();
    case FileFormat::kTrainYaml: return train_yaml_fields();
    case FileFormat::kAdapter: return adapter_fields();
    case FileFormat::kTorchtitan:  // TOML is not written
    case FileFormat::kJob:
    case FileFormat::kCommandLine:
    case FileFormat::kModelConfig: break;
  }
  return {};
}

std::span<const std::string_view> deepspeed_keys(FileFormat format) {
  static constexpr std::array<std::string_view, 1> kOwn{"deepspeed"};
  static constexpr std::array<std::string_view, 2> kLlamaFactory{"deepspeed",
                                                                 "dist_config.config_file"};
  static constexpr std::array<std::string_view, 1> kAccelerate{
      "deepspeed_config.deepspeed_config_file"};
  switch (format) {
    case FileFormat::kTrainingArguments:
    case FileFormat::kMsSwift:
    case FileFormat::kAxolotl: return kOwn;
    case FileFormat::kLlamaFactory: return kLlamaFactory;
    case FileFormat::kAccelerate: return kAccelerate;
    case FileFormat::kJob:
    case FileFormat::kModelConfig:
    case FileFormat::kAdapter:
    case FileFormat::kDeepSpeed:
    case FileFormat::kTorchtune:
    case FileFormat::kTorchtitan:
    case FileFormat::kLitgpt:
    case FileFormat::kVerl:
    case FileFormat::kNemoAutomodel:
    case FileFormat::kNemoRl:
    case FileFormat::kCommandLine:
    case FileFormat::kTrainYaml: break;
  }
  return {};
}

ParsedFile read_tree(const Node& tree, FileFormat format) {
  ParsedFile parsed;
  parsed.file = tree.file();
  parsed.format = format;
  parsed.content = tree;
  const KeyRecorder recorder;
  switch (format) {
    case FileFormat::kJob:                 // merged as it is
    case FileFormat::kCommandLine: break;  // read by estimator/command_line/
    case FileFormat::kModelConfig: read_model_config(parsed); break;
    case FileFormat::kAdapter: read_adapter(parsed); break;
    case FileFormat::kTrainingArguments: read_training_arguments(parsed); break;
    case FileFormat::kDeepSpeed: read_deepspeed(parsed); break;
    case FileFormat::kAccelerate: read_accelerate(parsed); break;
    case FileFormat::kAxolotl: read_axolotl(parsed); break;
    case FileFormat::kLlamaFactory: read_llama_factory(parsed); break;
    case FileFormat::kTorchtune: read_torchtune(parsed); break;
    case FileFormat::kTorchtitan: read_torchtitan(parsed); break;
    case FileFormat::kLitgpt: read_litgpt(parsed); break;
    case FileFormat::kMsSwift: read_ms_swift(parsed); break;
    case FileFormat::kVerl: read_verl(parsed); break;
    case FileFormat::kNemoAutomodel: read_nemo_automodel(parsed); break;
    case FileFormat::kNemoRl: read_nemo_rl(parsed); break;
    case FileFormat::kTrainYaml: read_train_yaml(parsed); break;
  }
  check_values(parsed);
  // A job's keys are checked where the job is read, a model's where its file is (read_path).
  if (format != FileFormat::kJob && format != FileFormat::kModelConfig)
    collect_unread_keys(recorder, parsed);
  return parsed;
}

void read_with_sections(const Node& tree, FileFormat format,
                        std::vector<ParsedFile>& parsed_files) {
  parsed_files.push_back(read_tree(tree, format));
  const std::span<const std::string_view> keys = deepspeed_keys(format);
  if (std::find(keys.begin(), keys.end(), "deepspeed") == keys.end()) return;
  const Node* deepspeed = value_at(tree, "deepspeed");
  if (deepspeed == nullptr || !deepspeed->is_map()) return;
  parsed_files.push_back(read_tree(*deepspeed, FileFormat::kDeepSpeed));
  parsed_files.back().file = tree.file();
  parsed_files.back().section = "deepspeed";
}

}  // namespace memfathom
