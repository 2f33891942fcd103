#include "estimator/readers/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "core/error.h"
#include "core/lowercase.h"
#include "core/version.h"
#include "estimator/models/blocks/transformers_policy.h"
#include "estimator/readers/formats.h"
#include "estimator/readers/frozen_modules.h"
#include "estimator/readers/model_config.h"
#include "estimator/readers/named_model.h"
#include "estimator/readers/pipeline.h"

namespace memfathom {
namespace {

struct MergedSetting {
  Node value;
  std::string file;
  FileFormat format;
};

// What a model's own configuration says of training (the type its weights were stored in, the
// sample it was made for) is only a default; a file about training knows better.
bool yields(FileFormat format, std::string_view key) {
  return format == FileFormat::kModelConfig && key.starts_with("training.");
}

// A Trainer's amp-bf16 beside an engine's bf16 is one and the same wish: the engine then keeps
// 16-bit weights.
bool is_equivalent_setting(std::string_view key, const Node& a, const Node& b) {
  if (a.same_value(b)) return true;
  if (key != "training.precision" || !a.is_string() || !b.is_string()) return false;
  return a.as_string() == "amp-" + b.as_string() || b.as_string() == "amp-" + a.as_string();
}

std::string shown(const Node& value) {
  return value.is_string() ? value.as_string() : value.shown();
}

void decide(std::map<std::string, MergedSetting>& decided, const KeyChange& change,
            const ParsedFile& parsed, MergedJob& job) {
  const auto known = decided.find(change.key);
  if (known != decided.end()) {
    if (yields(parsed.format, change.key)) return;
    const bool same = is_equivalent_setting(change.key, known->second.value, change.value);
    if (same && change.value.is_string() && change.value.as_string().starts_with("amp-")) return;
    if (!same && !yields(known->second.format, change.key)) {
      job.warnings.push_back(fmt::format("{} is {} in {} and {} in {}; the latter was taken",
                                         change.key, shown(known->second.value), known->second.file,
                                         shown(change.value), parsed.file));
    }
  }
  decided.insert_or_assign(change.key, MergedSetting{change.value, parsed.file, parsed.format});
}

Patch settings_of(const ParsedFile& parsed) {
  return parsed.format == FileFormat::kJob ? patch_of(parsed.content) : parsed.settings;
}

// "preset" of "model.preset"; empty for what says no model.
std::string_view model_form(std::string_view key) {
  constexpr std::string_view kModel = "model.";
  if (!key.starts_with(kModel)) return {};
  key.remove_prefix(kModel.size());
  key = key.substr(0, key.find_first_of(".["));
  static constexpr std::array<std::string_view, 7> kForms{
      "preset", "config", "layers", "modules", "trace", "parameters", "family"};
  return std::find(kForms.begin(), kForms.end(), key) != kForms.end() ? key : std::string_view();
}

// A job has one model: a later file that says another puts it in the place of the earlier one.
void replace_model(const ParsedFile& parsed, MergedJob& job) {
  const Node* model = job.document.find("model");
  std::string form;
  for (const KeyChange& change : settings_of(parsed)) {
    if (form.empty()) form = model_form(change.key);
  }
  if (form.empty() || model == nullptr || !model->is_map()) return;
  for (const Node& entry : model->entries()) {
    const std::string other(entry.key());
    if (model_form("model." + other).empty() || other == form) continue;
    job.warnings.push_back(fmt::format(
        "the model is named twice: model.{} is {}, and {} says another; the latter was taken",
        other, shown(entry), parsed.file));
    job.document.erase("model");
    return;
  }
}

// Names of one shape ("Llama-3.1-8B" and "meta-llama/Llama-3.1-8B-Instruct") are one model.
std::string identity_of(const std::string& name) {
  const std::optional<NamedModel> named = find_named_model(name, huggingface_cache());
  return lowercase(named ? named->form + " " + named->value : name);
}

// Where no file describes the model, the first that names it decides.
void resolve_base_model(const std::vector<ParsedFile>& files, MergedJob& job) {
  if (has_model(job.document)) return;
  for (const ParsedFile& parsed : files) {
    if (parsed.base_model.empty()) continue;
    const std::optional<NamedModel> named =
        find_named_model(parsed.base_model, huggingface_cache());
    if (!named) {
      job.assumptions.push_back(
          fmt::format("{} names the model {}, which is neither a preset nor a local folder nor in "
                      "the local Hugging Face cache; pass it with --model",
                      parsed.file, parsed.base_model));
      continue;
    }
    job.document.assign("model." + named->form, node_of(*named));
    job.is_model_named = true;
    job.is_model_guessed = named->form == "parameters";
    if (!named->assumption.empty()) job.assumptions.push_back(named->assumption);
    job.model_name = parsed.base_model;
    return;
  }
}

// accelerate makes what FSDP trains fp32 where the precision is mixed, whatever type it was loaded
// in (fsdp_utils.py, accelerator.py of accelerate 1.x).
void train_fsdp_in_fp32(MergedJob& job) {
  const Node* precision = value_at(job.document, "training.precision");
  const Node* autocast = value_at(job.document, "training.autocast");
  const Node* fsdp = value_at(job.document, "parallel.fsdp");
  if (precision == nullptr || autocast == nullptr || fsdp == nullptr || !precision->is_string() ||
      !autocast->is_string() || !is_on(*fsdp) ||
      value_at(job.document, "training.lora") != nullptr ||
      value_at(job.document, "training.quantization") != nullptr)
    return;
  const std::string type = autocast->as_string();
  if ((type != "bf16" && type != "fp16") || precision->as_string() != type) return;
  Node training = job.document.at("training");
  training.erase("autocast");
  training.set("precision", Node::string("amp-" + type));
  job.document.set("training", std::move(training));
  job.assumptions.push_back(
      fmt::format("under FSDP with mixed precision, accelerate keeps trained weights in fp32 and "
                  "computes in {}",
                  type));
}

// A decoder that is known by its name alone. Its authors publish 16-bit weights; those of GPT-2,
// OPT's contemporaries and encoders are 32-bit or say otherwise.
bool is_named_decoder(const Node& document, const Node& config) {
  static constexpr auto kFamilies = std::to_array<std::string_view>(
      {"llama",       "mistral",     "mixtral",  "qwen2",       "qwen2_moe", "qwen3",
       "qwen3_moe",   "phi3",        "gemma",    "gemma3_text", "gemma3",    "falcon",
       "deepseek_v2", "deepseek_v3", "glm",      "granite",     "smollm3",   "gpt_oss",
       "qwen2_vl",    "qwen2_5_vl",  "qwen3_vl", "starcoder2"});
  if (value_at(document, "model.preset") == nullptr) return false;
  const std::string type = text_at(config, "model_type");
  return std::find(kFamilies.begin(), kFamilies.end(), type) != kFamilies.end();
}

bool has_format(const std::vector<ParsedFile>& files, FileFormat format) {
  return std::any_of(files.begin(), files.end(),
                     [&](const ParsedFile& parsed) { return parsed.format == format; });
}

}  // namespace

void refuse_two_models(const std::vector<ParsedFile>& files) {
  const ParsedFile* first = nullptr;
  for (const ParsedFile& parsed : files) {
    if (parsed.base_model.empty()) continue;
    if (first == nullptr) {
      first = &parsed;
    } else if (identity_of(first->base_model) != identity_of(parsed.base_model)) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{} names the model {}, and {} names {}; give files of one model, or "
                              "say which with --model",
                              first->file, first->base_model, parsed.file, parsed.base_model));
    }
  }
}

bool has_model(const Node& document) {
  const Node* model = value_at(document, "model");
  if (model == nullptr || !model->is_map()) return model != nullptr;
  return std::any_of(model->entries().begin(), model->entries().end(),
                     [](const Node& entry) { return entry.key() != "train"; });
}

namespace {

// A model that is named by the folder of a pipeline is read as that folder is.
void read_named_pipeline(std::vector<ParsedFile>& files) {
  const auto names = [](const ParsedFile& parsed) {
    return !parsed.base_model.empty() && names_pipeline(parsed.base_model);
  };
  const auto found = std::find_if(files.begin(), files.end(), names);
  if (found == files.end()) return;
  std::vector<ParsedFile> pipeline = read_path(found->base_model);
  found->base_model.clear();
  for (ParsedFile& parsed : pipeline) files.push_back(std::move(parsed));
}

}  // namespace

MergedJob merge_files(std::vector<ParsedFile> files) {
  read_named_pipeline(files);
  MergedJob job;
  job.document = Node::map();
  std::map<std::string, MergedSetting> decided;
  const ParsedFile* own = nullptr;  // the first job file is the ground the others are laid on
  for (const ParsedFile& parsed : files) {
    if (parsed.format == FileFormat::kJob && own == nullptr) own = &parsed;
    for (const KeyChange& change : settings_of(parsed)) decide(decided, change, parsed, job);
  }
  if (own != nullptr) job.document = own->content;
  // A map of the job and a key inside it may both be said; the order of the files decides.
  for (const ParsedFile& parsed : files) {
    if (&parsed == own) continue;
    replace_model(parsed, job);
    for (const KeyChange& change : settings_of(parsed)) {
      const MergedSetting& winner = decided.at(change.key);
      if (winner.file == parsed.file) job.document.assign(change.key, winner.value);
    }
  }
  resolve_base_model(files, job);
  if (std::none_of(files.begin(), files.end(),
                   [](const ParsedFile& parsed) { return parsed.format == FileFormat::kJob; }))
    train_fsdp_in_fp32(job);
  for (const ParsedFile& parsed : files) {
    freeze_named_modules(parsed, job);
    job.assumptions.insert(job.assumptions.end(), parsed.assumptions.begin(),
                           parsed.assumptions.end());
    job.not_modelled.insert(job.not_modelled.end(), parsed.not_modelled.begin(),
                            parsed.not_modelled.end());
    job.unread.insert(job.unread.end(), parsed.unread.begin(), parsed.unread.end());
  }
  job.files = std::move(files);
  return job;
}

// Engines that shard keep weights of their own.
void keep_stored_type(const std::vector<ParsedFile>& files, Node& document, MergedJob& notes) {
  const Node* precision = value_at(document, "training.precision");
  const Node* stack = value_at(document, "target.stack.transformers");
  const bool older =
      stack != nullptr && !TransformersPolicy(Version::parse(shown(*stack)).value_or(Version{}))
                               .loads_configured_type();
  // LLaMA-Factory loads what stays frozen in the type of the model's config.json.
  const bool is_factory_lora = has_format(files, FileFormat::kLlamaFactory) &&
                               precision == nullptr &&
                               value_at(document, "training.lora") != nullptr;
  // An adapter's file says nothing of the type that its model is loaded in.
  const bool is_adapter = has_format(files, FileFormat::kAdapter) && precision == nullptr;
  const bool in_float32 = std::any_of(files.begin(), files.end(), [](const ParsedFile& parsed) {
    return parsed.format == FileFormat::kTrainingArguments && loads_float32(parsed.content);
  });
  if (older || in_float32 || (precision != nullptr && !precision->is_string()) ||
      (!has_format(files, FileFormat::kTrainingArguments) && !is_factory_lora && !is_adapter) ||
      has_format(files, FileFormat::kDeepSpeed) ||
      value_at(document, "parallel.zero_stage") != nullptr ||
      value_at(document, "parallel.fsdp") != nullptr)
    return;
  const bool is_guessed = value_at(document, "model.parameters") != nullptr;
  const Node config = model_config(document);
  if (!config.is_map() && !is_guessed) return;
  if (precision == nullptr) {
    if (!is_guessed && !is_named_decoder(document, config)) return;
    document.assign("training.precision", Node::string("bfloat16"));
    notes.assumptions.emplace_back(
        "the model's config.json is not available and no precision is set: assuming bfloat16 "
        "weights, as most language models have, loaded and trained as such, as transformers 5 "
        "does. If your script loads them in float32, as older versions do, pass --precision fp32");
    return;
  }
  const std::string compute = precision->as_string();
  if (compute != "amp-bf16" && compute != "amp-fp16") return;
  const Node* stored = value_at(config, "dtype");
  if (stored == nullptr) stored = value_at(config, "torch_dtype");
  if (stored == nullptr && (is_guessed || is_named_decoder(document, config))) {
    const std::string type = compute == "amp-bf16" ? "bfloat16" : "float16";
    document.assign("training.precision", Node::string(type));
    document.assign("training.autocast", Node::string(compute.substr(4)));
    notes.assumptions.push_back(fmt::format(
        "the model's config.json is not here: its weights are taken to be stored in {}, as those "
        "of most language models are, and loaded so, as by transformers 5; a script that loads "
        "them in float32, as older versions do, is --precision {}",
        type, compute));
    return;
  }
  const std::string type = stored != nullptr && stored->is_string() ? stored->as_string() : "";
  if (type != "bfloat16" && type != "float16") return;
  document.assign("training.precision", Node::string(type));
  document.assign("training.autocast", Node::string(compute.substr(4)));
  notes.assumptions.push_back(
      fmt::format("the weights are {}, as config.json says and transformers 5 loads them; a script "
                  "that loads them in float32, as older versions do, is --precision {}",
                  type, compute));
}

}  // namespace memfathom
