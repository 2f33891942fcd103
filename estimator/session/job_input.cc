#include "estimator/session/job_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "estimator/advise/changes.h"
#include "estimator/command_line/command_line.h"
#include "estimator/job/describe.h"
#include "estimator/job/patch.h"
#include "estimator/job/read_job.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/readers/builtin_family.h"
#include "estimator/readers/config_keys.h"
#include "estimator/readers/default_optimizer.h"
#include "estimator/readers/frozen_modules.h"
#include "estimator/readers/gpu_count.h"
#include "estimator/readers/language_model_part.h"
#include "estimator/readers/named_bits.h"
#include "estimator/readers/named_model.h"
#include "estimator/readers/pipeline.h"
#include "estimator/readers/position_limit.h"
#include "estimator/readers/resolve_auto.h"
#include "estimator/readers/setting_warnings.h"
#include "estimator/readers/unread_keys.h"
#include "estimator/session/open_verdict.h"

namespace memfathom {
namespace {

std::vector<UnreadKey> unread_of_model(const JobInput& input,
                                       const std::function<bool(const UnreadKey&)>& counts) {
  std::vector<UnreadKey> keys;
  for (const UnreadKey& key : input.files.unread) {
    if ((key.concerns == "model" || key.concerns == "sizes") && counts(key)) keys.push_back(key);
  }
  return keys;
}

void refuse_unread(const std::vector<UnreadKey>& keys) {
  if (keys.empty()) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: the model is in doubt, because these keys were not read: {}; "
                          "describe it in a job file (docs/jobs.md), or give --model FOLDER with "
                          "its config.json, --model PRESET (memfathom models lists them) or "
                          "--total-params 8.0",
                          keys.front().file, names_of(keys)));
}

bool describes_model(const ParsedFile& parsed) {
  return std::any_of(parsed.settings.begin(), parsed.settings.end(), [](const KeyChange& change) {
    return change.key.starts_with("model.config.");
  });
}

// A file that describes the model itself, and of whose description a part was not read: the
// estimate would be of another model. One that another file or a flag names is not in doubt.
void check_model_section(JobInput& input) {
  const Node* model = value_at(input.document, "model");
  const Node* of_files = value_at(input.files.document, "model");
  if (input.files.is_model_named && model != nullptr && of_files != nullptr &&
      model->same_value(*of_files))
    refuse_two_models(input.files.files);
  if (input.files.unread.empty()) return;
  const std::vector<ParsedFile>& files = input.files.files;
  const bool is_in_another_file =
      std::any_of(files.begin(), files.end(), [](const ParsedFile& parsed) {
        return parsed.format == FileFormat::kModelConfig ||
               (parsed.format == FileFormat::kJob && has_model(parsed.content));
      });
  const bool is_replaced =
      is_in_another_file ||
      (model != nullptr && (of_files == nullptr || !model->same_value(*of_files)));
  for (const ParsedFile& parsed : input.files.files) {
    if (parsed.format == FileFormat::kJob || parsed.format == FileFormat::kModelConfig) continue;
    const bool is_described = describes_model(parsed);
    // Which modules are frozen is a matter of training.
    const auto is_own = [&](const UnreadKey& key) {
      const bool is_in_section = key.key.starts_with("model.");
      return key.file == parsed.file && (is_described || is_in_section) &&
             (key.concerns == "model" || is_in_section) &&
             key.key.find("freeze") == std::string::npos && !key.key.ends_with("_trainable");
    };
    if (is_replaced) {
      for (UnreadKey& key : input.files.unread) {
        if (is_own(key)) key.concerns.clear();
      }
    } else {
      refuse_unread(unread_of_model(input, is_own));
    }
  }
}

// What a command leaves open ($GPUS) and a flag of ours decides is no longer unknown.
void drop_decided(JobInput& input) {
  for (UnreadKey& key : input.files.unread) {
    if (key.decides.empty()) continue;
    const Node* now = value_at(input.document, key.decides);
    const Node* before = value_at(input.files.document, key.decides);
    if (now != nullptr && (before == nullptr || !now->same_value(*before))) key.concerns.clear();
  }
}

// PEFT adapts embeddings too, and unsloth trains them whole.
bool is_embedding(std::string_view target) {
  static constexpr std::array<std::string_view, 8> kNames{
      "embed_tokens",   "wte", "wpe", "word_embeddings", "embed_in", "shared", "tok_embeddings",
      "embed_positions"};
  return std::find(kNames.begin(), kNames.end(), target) != kNames.end();
}

// Since transformers 5 the matrices of all experts are two tensors, and PEFT turns targets with
// the names of their layers into adapters of these tensors.
bool may_adapt_experts(std::string_view target, const Job& job) {
  static constexpr std::array<std::string_view, 7> kNames{
      "all-linear", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"};
  const NetworkConfig* network = job.model.config();
  return network != nullptr && !job.target.stack.transformers.starts_with("4.") &&
         find_any(network->config, {"num_local_experts", "num_experts", "n_routed_experts"}) !=
             nullptr &&
         std::find(kNames.begin(), kNames.end(), target) != kNames.end();
}

// Here adapters stand at linear layers only.
void name_other_adapters(JobInput& input) {
  if (!input.job.training.lora) return;
  for (const std::string& target : input.job.training.lora->targets) {
    const std::string_view name = std::string_view(target).substr(target.rfind('.') + 1);
    const bool of_experts = may_adapt_experts(name, input.job);
    if (!of_experts && !is_embedding(name)) continue;
    input.files.unread.push_back({.file = input.document.file(),
                                  .key = fmt::format("training.lora.targets: {}{}", target,
                                                     of_experts ? " (of experts)" : ""),
                                  .concerns = "adapters"});
  }
}

// Without targets PEFT adapts the layers that it knows of a family.
void complete_lora_targets(JobInput& input) {
  if (!input.job.training.lora || value_at(input.document, "training.lora.targets") != nullptr)
    return;
  const LoraTargets usual = usual_lora_targets(input.job.model);
  if (usual == FamilyTraits{}.lora_targets) return;
  std::vector<std::string> targets;
  Node list = Node::list();
  for (const std::string_view target : usual) {
    if (target.empty()) continue;
    targets.emplace_back(target);
    list.append(Node::string(targets.back()));
  }
  input.files.assumptions.push_back(
      fmt::format("LoRA adapts {}, as is usual for such a model (training.lora.targets is not set)",
                  fmt::join(targets, ", ")));
  input.document.assign("training.lora.targets", std::move(list));
  input.job.training.lora->targets = std::move(targets);
}

// Files that only name their model, by a name that nothing here explains. A batch line is refused
// where its job is read.
void require_model(const JobInput& input) {
  if (input.files.files.empty() || has_model(input.document)) return;
  refuse_unread(unread_of_model(input, [](const UnreadKey& key) {
    return key.concerns == "model" || key.key.starts_with("model.");
  }));
  std::string which = "the files or the command do not name the model";
  for (const ParsedFile& parsed : input.files.files) {
    if (!parsed.base_model.empty())
      which = fmt::format(
          "{} names the model {}, which is neither a preset nor a local folder nor in the local "
          "Hugging Face cache",
          parsed.file, parsed.base_model);
  }
  throw Error(ErrorKind::kInput,
              which +
                  "; add --model FOLDER with its config.json, --model PRESET (memfathom models "
                  "lists them) or --total-params 8.0, or record the script's own steps: memfathom "
                  "capture SCRIPT ...");
}

// The model's name as a file or a flag writes it; empty where the model is described.
std::string written_name(const JobInput& input) {
  const Node* model = value_at(input.document, "model");
  const Node* of_files = value_at(input.files.document, "model");
  if (model != nullptr && of_files != nullptr && model->same_value(*of_files) &&
      !input.files.model_name.empty())
    return input.files.model_name;
  return text_at(input.document, "model.preset");
}

}  // namespace

void complete(JobInput& input, const CompletionOptions& options) {
  drop_decided(input);
  build_frozen_modules(input.document, input.files);
  check_model_section(input);
  complete_builtin_family(input.document, input.files.assumptions);
  require_model(input);
  const bool is_sized = value_at(input.document, "model.parameters") != nullptr;
  const std::string name = written_name(input);
  complete_model_names(input.document, huggingface_cache(), input.files.assumptions);
  // A config.json says itself how the weights are stored.
  if (value_at(input.document, "model.config") == nullptr)
    count_named_bits(name, input.document.file(), input.document, input.files.assumptions,
                     input.files.unread);
  name_unread_keys_of_model(input.document, input.files);
  if (!is_sized && value_at(input.document, "model.parameters") != nullptr)
    input.files.is_model_guessed = true;
  replace_by_language_model(input.document, input.files);
  if (!options.sets_precision) keep_stored_type(input.files.files, input.document, input.files);
  assume_optimizer(input.files.files, input.document, input.files.assumptions);
  resolve_auto_values(input.files.files, input.document, input.files);
  if (input.has_foreign_files()) {
    input.files.is_length_assumed = assume_length(input.document, input.files.assumptions);
    assume_gpus(input.document, input.files.assumptions);
  }
  select_autoencoder_part(input.files.files, input.document);
  if (options.frozen_copy) {
    const Patch patch = strategy_patch("frozen-copy", read_job(input.document));
    input.document = patched(std::move(input.document), patch);
  }
  input.job = read_job(input.document);
  complete_lora_targets(input);
  name_other_adapters(input);
}

JobInput read_job_file(const std::string& path) {
  JobInput input;
  input.files = merge_files(read_source(path));
  input.document = input.files.document;
  complete(input);
  return input;
}

JobInput complete_job(Node document) {
  JobInput input;
  input.document = std::move(document);
  complete(input);
  return input;
}

bool JobInput::has_foreign_files() const {
  return std::any_of(files.files.begin(), files.files.end(), [](const ParsedFile& parsed) {
    return parsed.format != FileFormat::kJob && parsed.format != FileFormat::kModelConfig;
  });
}

bool JobInput::is_open() const {
  return std::any_of(files.unread.begin(), files.unread.end(),
                     [](const UnreadKey& key) { return !key.concerns.empty(); });
}

void JobInput::withhold(Verdict& verdict) const {
  if (!is_open() || verdict.status == VerdictStatus::kUnknown) return;
  verdict.status = VerdictStatus::kUndecided;
  verdict.probability_fits.reset();
}

void JobInput::widen(Estimate& estimate) const {
  // Of 67 presets whose names say a size, nine in ten take 0.71 to 1.91 times what a Llama of that
  // size takes (training in bf16 whole and with LoRA, batch 2 of 2048 tokens).
  constexpr double kLow = 0.71;
  constexpr double kHigh = 1.91;
  if (!files.is_model_guessed || value_at(document, "model.parameters") == nullptr) return;
  Totals& totals = estimate.totals;
  const auto share = [&](double ratio) {
    return Bytes{
        static_cast<std::int64_t>(ratio * static_cast<double>(totals.device_peak.count()))};
  };
  totals.device_low = std::min(totals.device_low, share(kLow));
  totals.device_high = std::max(totals.device_high, share(kHigh));
  if (totals.device_high_equal_lengths)
    *totals.device_high_equal_lengths = std::max(*totals.device_high_equal_lengths, share(kHigh));
  bound_by_gpu(estimate);
  estimate.uncertainty.push_back({"model", totals.device_peak - share(kLow),
                                  share(kHigh) - totals.device_peak,
                                  "the shape of the model is guessed from its size"});
  estimate.assumptions.push_back(
      fmt::format("the interval is widened to {} to {} times the estimate, which covers nine in "
                  "ten models of known shape that have their size in their name",
                  kLow, kHigh));
  Verdict& verdict = estimate.verdict;
  if (!verdict.available || totals.device_low > *verdict.available ||
      totals.device_high <= *verdict.available)
    return;
  // Whether it fits depends on the shape, which is not known.
  if (verdict.status == VerdictStatus::kFits) verdict.status = VerdictStatus::kTight;
  verdict.probability_fits.reset();
}

void JobInput::annotate(Estimate& estimate) const {
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(estimate.assumptions, files.assumptions);
  if (std::string sentence = unspecified_settings(document, job, files.unread); !sentence.empty())
    estimate.assumptions.push_back(std::move(sentence));
  append(estimate.not_modelled, files.not_modelled);
  append(estimate.warnings, files.warnings);
  append(estimate.warnings, unread_sentences(files.unread));
  estimate.unread = files.unread;
  widen(estimate);
  withhold(estimate.verdict);
  if (has_foreign_files()) leave_what_is_not_said_open(document, files, estimate);
  if (std::string sentence = position_limit_warning(document, job.model); !sentence.empty())
    estimate.warnings.push_back(std::move(sentence));
  append(estimate.warnings, setting_warnings(document, job));
}

}  // namespace memfathom
