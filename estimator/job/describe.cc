#include "estimator/job/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <vector>

namespace memfathom {
namespace {

namespace fs = std::filesystem;

const Node* given(const Node& map, std::string_view key) {
  const Node* value = map.is_map() ? map.find(key) : nullptr;
  return value != nullptr && !value->is_null() ? value : nullptr;
}

const Node* training_key(const Node& document, std::string_view key) {
  const Node* training = given(document, "training");
  return training == nullptr ? nullptr : given(*training, key);
}

std::string text_of(const Node& map, std::string_view key) {
  const Node* value = given(map, key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

// The folder of a config.json; of a snapshot in the hub's cache the model's name.
std::string folder_name(const fs::path& path) {
  constexpr std::string_view kCached = "models--";
  for (const fs::path& part : path) {
    std::string name = part.string();
    if (!name.starts_with(kCached)) continue;
    name.erase(0, kCached.size());
    if (const std::size_t dashes = name.find("--"); dashes != std::string::npos)
      name.replace(dashes, 2, "/");
    return name;
  }
  const bool is_file = path.extension() == ".json";
  const fs::path folder = is_file ? path.parent_path() : path;
  if (!is_file || path.filename() == "config.json") return folder.filename().string();
  return path.filename().string();
}

std::string config_name(const Node& config) {
  if (config.is_string()) return folder_name(config.as_string());
  for (const char* key : {"_name_or_path", "model_type", "_class_name"}) {
    if (std::string name = text_of(config, key); !name.empty()) return name;
  }
  return "a model";
}

std::string module_names(const Node& modules) {
  std::vector<std::string> names;
  for (const Node& module : modules.items()) names.push_back(text_of(module, "name"));
  return fmt::format("{}", fmt::join(names, " + "));
}

std::string model_name(const Node& model) {
  if (std::string preset = text_of(model, "preset"); !preset.empty()) return preset;
  if (const Node* config = given(model, "config")) return config_name(*config);
  if (const Node* modules = given(model, "modules")) return module_names(*modules);
  if (const Node* size = given(model, "parameters"))
    return fmt::format("a model of {:.3g} B parameters", size->as_number() / 1e9);
  return given(model, "trace") != nullptr ? "a recorded step" : "a stack of layers";
}

std::string_view mode_noun(Mode mode) {
  switch (mode) {
    case Mode::kTrain: return "training";
    case Mode::kInference: return "inference";
    case Mode::kGenerate: return "generation";
  }
  return "";
}

std::string sample_words(const TrainingSpec& training) {
  const ModelSettings& settings = training.settings;
  std::string text = fmt::format("batch {}", training.batch_size);
  if (training.preference) text += " (pairs)";
  if (settings.sequence_length > 0) text += fmt::format(" of {} tokens", settings.sequence_length);
  if (settings.image_height > 0)
    text += fmt::format(" of {} x {}", settings.image_height, settings.image_width);
  if (settings.num_frames > 0) text += fmt::format(", {} frames", settings.num_frames);
  if (training.mode == Mode::kGenerate && settings.new_tokens > 0)
    text += fmt::format(", {} new tokens", settings.new_tokens);
  return text;
}

std::string optimizer_name(const Node& document) {
  const Node* optimizer = training_key(document, "optimizer");
  if (optimizer != nullptr && optimizer->is_map()) optimizer = given(*optimizer, "name");
  return optimizer != nullptr && optimizer->is_string() ? optimizer->as_string() : "adamw";
}

void add_training(const Node& document, const TrainingSpec& training,
                  std::vector<std::string>& words) {
  words.push_back(training.optimizer.name == OptimizerName::kNone ? "no optimizer"
                                                                  : optimizer_name(document));
  if (training.lora) words.push_back(fmt::format("LoRA of rank {}", training.lora->rank));
  if (training.preference) words.emplace_back("DPO");
  if (training.settings.checkpointing == Checkpointing::kFull) words.emplace_back("checkpointing");
  if (training.settings.checkpointing == Checkpointing::kSelective)
    words.emplace_back("selective checkpointing");
  if (training.accumulation_steps > 1)
    words.push_back(fmt::format("{} accumulation steps", training.accumulation_steps));
  if (training.evaluation_batch > 0)
    words.push_back(fmt::format("evaluation by {}", training.evaluation_batch));
}

void add_parallel(const ParallelSpec& parallel, std::vector<std::string>& words) {
  if (parallel.num_gpus > 1) words.push_back(fmt::format("{} GPUs", parallel.num_gpus));
  if (parallel.zero_stage > 0) words.push_back(fmt::format("ZeRO-{}", parallel.zero_stage));
  if (parallel.fsdp != Fsdp::kNone) words.emplace_back("FSDP");
  if (parallel.tensor > 1) words.push_back(fmt::format("{} tensor-parallel", parallel.tensor));
  if (parallel.pipeline > 1) words.push_back(fmt::format("{} stages", parallel.pipeline));
  std::vector<std::string_view> hosted;
  if (parallel.offload_parameters) hosted.emplace_back("weights");
  if (parallel.offload_optimizer) hosted.emplace_back("optimizer");
  if (parallel.offload_activations) hosted.emplace_back("activations");
  if (!hosted.empty()) words.push_back(fmt::format("{} on the host", fmt::join(hosted, " and ")));
}

// Names come from files, and a terminal obeys control characters.
std::string printable(std::string text) {
  for (char& c : text) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
  }
  return text;
}

// Whether `key` is said for every network: of the job, or of each of its modules.
bool says(const Node& document, std::string_view key) {
  if (training_key(document, key) != nullptr) return true;
  const Node* model = given(document, "model");
  const Node* modules = model == nullptr ? nullptr : given(*model, "modules");
  return modules != nullptr && modules->is_list() &&
         std::all_of(modules->items().begin(), modules->items().end(),
                     [&](const Node& module) { return given(module, key) != nullptr; });
}

}  // namespace

std::string_view precision_name(const Precision& precision) {
  if (precision.autocast && precision.parameters == DType::kFp32)
    return *precision.autocast == DType::kBf16 ? "amp-bf16" : "amp-fp16";
  return to_string(precision.parameters);
}

std::string describe(const Node& document, const Job& job) {
  const TrainingSpec& training = job.training;
  std::string name = printable(model_name(job.model.source()));
  if (job.model.trace() != nullptr) return name;
  std::vector<std::string> words{sample_words(training),
                                 std::string(precision_name(training.precision))};
  if (training.quantization != Quantization::kNone) {
    const Node& said = given(document, "training")->at("quantization");
    words.push_back(
        fmt::format("{} weights", (said.is_map() ? said.at("method") : said).as_string()));
  }
  if (training.mode == Mode::kTrain) add_training(document, training, words);
  add_parallel(job.parallel, words);
  return fmt::format("{}, {}: {}", name, mode_noun(training.mode), fmt::join(words, ", "));
}

std::string unspecified_settings(const Node& document, const Job& job,
                                 const std::vector<UnreadKey>& unread) {
  if (job.model.trace() != nullptr) return "";
  const TrainingSpec& training = job.training;
  std::vector<std::string> unsaid;
  std::vector<std::string> words;
  // A file may have said it under a key that was not read.
  const auto add = [&](std::string_view concerns, const std::string& chosen) {
    const auto key = std::find_if(unread.begin(), unread.end(), [&](const UnreadKey& candidate) {
      return candidate.concerns == concerns;
    });
    if (key == unread.end()) {
      unsaid.push_back(chosen);
    } else {
      words.push_back(fmt::format("{} ({} was not read)", chosen, key->key));
    }
  };
  if (!says(document, "batch_size"))
    add("batch", fmt::format("batch_size {}", training.batch_size));
  if (!says(document, "precision") && training_key(document, "autocast") == nullptr)
    add("precision", fmt::format("precision {}", precision_name(training.precision)));
  if (training.mode == Mode::kTrain && !says(document, "optimizer"))
    add("optimizer", "optimizer " + optimizer_name(document));
  const ModelSettings& settings = training.settings;
  if (training.mode == Mode::kGenerate && !says(document, "new_tokens"))
    add("sizes", fmt::format("new_tokens {}", settings.new_tokens));
  const bool sized = settings.sequence_length > 0 || settings.image_height > 0;
  if (!sized && job.model.layers() == nullptr && job.model.modules() == nullptr)
    add("sizes", "the model's default input size");
  if (!unsaid.empty())
    words.push_back(fmt::format("{} (not set in the job)", fmt::join(unsaid, ", ")));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace memfathom
