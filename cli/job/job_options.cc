#include "cli/job/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <system_error>

#include "core/error.h"
#include "estimator/models/presets.h"
#include "estimator/readers/builtin_family.h"
#include "estimator/readers/named_model.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {
namespace {

// A flag that sets one key of the job.
struct PlainFlag {
  const char* names;
  const char* key;
};

constexpr auto kIntegers = std::to_array<PlainFlag>({
    {"--batch-size,--micro-batch-size,--per-device-train-batch-size", "training.batch_size"},
    {"--sequence-length,--seq-length,--seq-len,--max-seq-length,--max-length",
     "training.sequence_length"},
    {"--image-size", "training.image_size"},
    {"--num-frames", "training.num_frames"},
    {"--num-images", "training.num_images"},
    {"--new-tokens,--max-new-tokens", "training.new_tokens"},
    {"--gradient-accumulation-steps", "training.gradient_accumulation_steps"},
    {"--zero-stage,--zero", "parallel.zero_stage"},
    {"--num-gpus", "parallel.num_gpus"},
    {"--tensor-parallel-size", "parallel.tensor"},
    {"--pipeline-parallel-size", "parallel.pipeline"},
});

constexpr auto kTexts = std::to_array<PlainFlag>({
    {"--attention,--attn-implementation", "training.attention"},
    {"--optimizer,--optim", "training.optimizer"},
    {"--quantization", "training.quantization"},
    {"--mode", "training.mode"},
    {"--margin", "target.margin"},
});

// Parses a flag's value as YAML. An empty one is mostly a shell variable that is not set.
Node value_of(const std::string& flag, const std::string& text) {
  if (text.find_first_not_of(" \t\n") == std::string::npos)
    throw Error(ErrorKind::kUsage, fmt::format("{} is empty; give it a value", flag));
  return parse_yaml(text, "command line", 0);
}

// "--optimizer" of "--optimizer,--optim".
std::string first_name(const char* names) {
  const std::string_view all = names;
  return std::string(all.substr(0, all.find(',')));
}

std::string precision_name(std::string dtype) {
  constexpr std::string_view kTorch = "torch.";  // as torch prints it
  if (dtype.starts_with(kTorch)) dtype.erase(0, kTorch.size());
  if (dtype == "float32" || dtype == "fp32") return "fp32";
  if (dtype == "float16" || dtype == "fp16" || dtype == "half") return "fp16";
  if (dtype == "bfloat16" || dtype == "bf16") return "bf16";
  return dtype;
}

// A plain number such as "24" is GiB; a size with a unit is kept.
std::string memory_size(const std::string& text) {
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  return bare ? text + "GiB" : text;
}

// No GPU has as much: the number was meant in MiB, as nvidia-smi shows it.
constexpr double kMaxGibibytes = 1024;

void check_gpu_memory(const std::string& text) {
  if (text.find_first_not_of("0. ") == std::string::npos) {
    throw Error(ErrorKind::kUsage, fmt::format("--gpu-memory is \"{}\"; give the GPU's memory, for "
                                               "example --gpu-memory 24 (GiB)",
                                               text));
  }
  if (text.find_first_not_of("0123456789.") != std::string::npos ||
      std::strtod(text.c_str(), nullptr) <= kMaxGibibytes)
    return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("--gpu-memory {}: {} GiB is more than any GPU has; {}MiB?", text, text, text));
}

constexpr double kMaxBillions = 1e6;  // of parameters; a larger value is a plain count by mistake

}  // namespace

// The values that are parsed as YAML.
struct JobOptions::ParsedValues {
  std::vector<std::pair<std::string, Node>> texts, sets;  // key, value
  std::optional<Node> fsdp;
  bool model_is_path = false;
};

struct JobOptions::Values {
  std::array<std::optional<std::int64_t>, kIntegers.size()> integers;
  std::array<std::optional<std::string>, kTexts.size()> texts;
  std::optional<std::string> target_concept;
  std::optional<std::string> model, dtype, mixed_precision, preference, reference, fsdp, gpu,
      gpu_memory, calibration;
  std::optional<double> total_params, trainable_params;
  std::optional<std::int64_t> height, width, hidden_dim, num_layers, lora_rank, device_id;
  std::optional<bool> use_fp16, gradient_checkpointing, load_in_4bit, load_in_8bit, cpu_offload,
      multi_gpu;
  std::vector<std::string> target_modules, sets;

  // Each function writes its flags into the job.
  void apply_model(bool is_path, Node& job) const;
  std::int64_t last_trained_blocks() const;
  void apply_plain(const ParsedValues& words, Node& job) const;
  void apply_extents(Node& job) const;
  void apply_precision(Node& job) const;
  void apply_training(Node& job) const;
  void apply_parallel(const ParsedValues& words, Node& job) const;
  void apply_target(Node& job) const;
  bool has_precision_flag() const;
  std::string autocast() const;
  void refuse_contradictions() const;
};

JobOptions::JobOptions() : values_(std::make_unique<Values>()) {}
JobOptions::~JobOptions() = default;

void JobOptions::declare(OptionParser& parser) {
  Values& v = *values_;
  for (std::size_t i = 0; i < kIntegers.size(); ++i)
    parser.option(kIntegers[i].names, v.integers[i]);
  for (std::size_t i = 0; i < kTexts.size(); ++i) parser.option(kTexts[i].names, v.texts[i]);
  parser.option("--model,--preset,--model-path,--model-name-or-path", v.model);
  parser.option("--dtype,--precision", v.dtype);
  parser.option("--mixed-precision", v.mixed_precision);
  parser.option("--preference", v.preference);
  parser.option("--reference", v.reference);
  parser.option("--fsdp", v.fsdp);
  parser.option("--gpu", v.gpu);
  parser.option("--calibration", v.calibration);
  parser.option("--total-params", v.total_params);
  parser.option("--trainable-params", v.trainable_params);
  parser.option("--gpu-memory", v.gpu_memory);
  parser.option("--height", v.height);
  parser.option("--width", v.width);
  parser.option("--hidden-dim,--hidden-size", v.hidden_dim);
  parser.option("--num-layers", v.num_layers);
  parser.option("--lora-rank,--lora-r", v.lora_rank);
  parser.option("--device-id", v.device_id);
  parser.flag("--use-fp16", v.use_fp16);
  parser.flag("--gradient-checkpointing", v.gradient_checkpointing);
  parser.flag("--load-in-4bit", v.load_in_4bit);
  parser.flag("--load-in-8bit", v.load_in_8bit);
  parser.flag("--cpu-offload,--use-cpu-offload", v.cpu_offload);
  // Of a script that is replaced: the first changes no memory, the second divides the model.
  parser.option("--target-concept", v.target_concept);
  parser.flag("--multi-gpu", v.multi_gpu);
  parser.list_option("--target-modules", v.target_modules);
  parser.option("--set", v.sets);
  // Flags of training commands that say less than an estimate has to know.
  constexpr const char* kHalf =
      "give --dtype {0} for weights in {0} or --mixed-precision {0} for autocast, or the whole "
      "training command after \"--\"";
  parser.hint("--bf16", fmt::format(kHalf, "bf16"));
  parser.hint("--fp16", fmt::format(kHalf, "fp16"));
  parser.hint("--deepspeed", "give its file with --from, or --zero-stage");
  for (const char* name : {"--flash-attn", "--use-flash-attn", "--use-flash-attention"})
    parser.hint(name, "give --attention flash");
}

std::optional<std::string> JobOptions::model_path() const {
  std::error_code ignored;  // a name that is too long is not a path
  if (!values_->model || std::filesystem::exists(*values_->model, ignored)) return values_->model;
  // A pipeline in the local cache has no config.json that a job could name.
  const std::optional<NamedModel> named = find_named_model(*values_->model, huggingface_cache());
  const bool is_pipeline =
      named && named->form == "config" &&
      std::filesystem::exists(std::filesystem::path(named->value) / "model_index.json", ignored);
  return is_pipeline ? std::optional(named->value) : std::nullopt;
}

// Replaces the model of the files but keeps which parts are trainable.
void JobOptions::Values::apply_model(bool is_path, Node& job) const {
  const auto say = [&](const char* form, Node value) {
    Node changed = Node::map();
    if (const Node* train = value_at(job, "model.train")) changed.set("train", *train);
    changed.set(form, std::move(value));
    job.assign("model", std::move(changed));
  };
  if (model && !is_path) say("preset", Node::string(*model));
  if (total_params) say("parameters", Node::number(*total_params * 1e9));
  if (const std::int64_t last = last_trained_blocks(); last > 0)
    job.assign("model.train.last", Node::integer(last));
}

// Blocks have the same size; 0 if all of the model is trained.
std::int64_t JobOptions::Values::last_trained_blocks() const {
  if (!trainable_params || !total_params || *trainable_params >= *total_params) return 0;
  std::vector<std::string> assumptions;
  const Node config = config_for_parameters(*total_params * 1e9, assumptions);
  const auto blocks = static_cast<double>(config.at("num_hidden_layers").as_int(1));
  return std::max<std::int64_t>(1, std::llround(blocks * *trainable_params / *total_params));
}

void JobOptions::Values::apply_plain(const ParsedValues& words, Node& job) const {
  for (std::size_t i = 0; i < kIntegers.size(); ++i) {
    if (integers[i]) job.assign(kIntegers[i].key, Node::integer(*integers[i]));
  }
  for (const auto& [key, value] : words.texts) job.assign(key, value);
}

void JobOptions::Values::apply_extents(Node& job) const {
  if (height || width) {
    Node size = Node::list();
    size.append(Node::integer(height.value_or(width.value_or(0))));
    size.append(Node::integer(width.value_or(height.value_or(0))));
    job.assign("training.image_size", std::move(size));
  }
  if (hidden_dim) job.assign("model.config.hidden_size", Node::integer(*hidden_dim));
  if (num_layers) job.assign("model.config.num_hidden_layers", Node::integer(*num_layers));
}

bool JobOptions::Values::has_precision_flag() const {
  const auto sets_it = [](const std::string& set) {
    return set.starts_with("training.precision=");
  };
  return dtype || use_fp16 || mixed_precision || std::any_of(sets.begin(), sets.end(), sets_it);
}

// A precision flag replaces all precision settings.
void JobOptions::Values::apply_precision(Node& job) const {
  if (const Node* training = job.find("training");
      training != nullptr && training->is_map() && has_precision_flag()) {
    Node changed = *training;
    changed.erase("autocast");
    job.set("training", std::move(changed));
  }
  if (dtype) job.assign("training.precision", Node::string(precision_name(*dtype)));
  const std::string half = autocast();
  if (half.empty()) return;
  if (dtype) {  // of the weights; autocast is in addition
    job.assign("training.autocast", Node::string(half));
  } else {
    job.assign("training.precision", Node::string("amp-" + half));
  }
}

// The type that --use-fp16 or --mixed-precision asks for; empty: none.
std::string JobOptions::Values::autocast() const {
  if (mixed_precision) return *mixed_precision == "no" ? "" : precision_name(*mixed_precision);
  return use_fp16.value_or(false) ? "fp16" : "";
}

// Flags of which one would silently win.
void JobOptions::Values::refuse_contradictions() const {
  const auto refuse = [](const std::string& both, const char* what_to_do) {
    throw Error(ErrorKind::kUsage, fmt::format("{} contradict each other; {}", both, what_to_do));
  };
  const std::string half = autocast();
  if (use_fp16.value_or(false) && half != "fp16")
    refuse("--use-fp16 and --mixed-precision " + *mixed_precision, "give one of them");
  const std::string weights = dtype ? precision_name(*dtype) : "fp32";
  if (!half.empty() && weights != "fp32" && weights != half && weights != "amp-" + half) {
    refuse(fmt::format("--dtype {} and autocast to {}", *dtype, half),
           "--dtype is the type of the weights, --mixed-precision (--use-fp16) that of autocast");
  }
  if (load_in_4bit.value_or(false) && load_in_8bit.value_or(false))
    refuse("--load-in-4bit and --load-in-8bit", "give one of them");
  if (model && !is_builtin_family(*model) && (hidden_dim || num_layers)) {
    refuse(fmt::format("--model {} and {}", *model, hidden_dim ? "--hidden-dim" : "--num-layers"),
           "that model has a shape of its own; edit its config.json and give that");
  }
}

void JobOptions::Values::apply_training(Node& job) const {
  if (preference) job.assign("training.preference.method", Node::string(*preference));
  if (reference) job.assign("training.preference.reference", Node::string(*reference));
  if (gradient_checkpointing)
    job.assign("training.gradient_checkpointing", Node::boolean(*gradient_checkpointing));
  if (lora_rank) job.assign("training.lora.rank", Node::integer(*lora_rank));
  if (!target_modules.empty()) {
    Node targets = Node::list();
    for (const std::string& words : target_modules) {
      std::istringstream listed(words);
      for (std::string target; std::getline(listed, target, ',');)
        if (!target.empty()) targets.append(Node::string(target));
    }
    job.assign("training.lora.targets", std::move(targets));
  }
  if (load_in_4bit && *load_in_4bit) job.assign("training.quantization", Node::string("nf4"));
  if (load_in_8bit && *load_in_8bit) job.assign("training.quantization", Node::string("int8"));
}

void JobOptions::Values::apply_parallel(const ParsedValues& words, Node& job) const {
  if (words.fsdp) job.assign("parallel.fsdp", *words.fsdp);
  if (!cpu_offload || !*cpu_offload) return;
  job.assign("parallel.offload.optimizer", Node::string("cpu"));
  // ZeRO-1 and ZeRO-2 have their weights on the GPU.
  const Node* stage = value_at(job, "parallel.zero_stage");
  if (stage == nullptr || stage->as_int() % 3 == 0)
    job.assign("parallel.offload.parameters", Node::string("cpu"));
}

void JobOptions::Values::apply_target(Node& job) const {
  if (gpu) job.assign("target.gpu", Node::string(*gpu));  // "4090" is a name
  if (calibration)  // the beginning of an id may look like a number
    job.assign("target.calibration", Node::string(*calibration));
  if (gpu_memory) job.assign("target.memory", Node::string(memory_size(*gpu_memory)));
  if (device_id && *device_id < 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--device-id is {}; the first GPU is 0", *device_id));
  }
  if (device_id) job.assign("target.device", Node::string(fmt::format("cuda:{}", *device_id)));
}

JobOptions::ParsedValues JobOptions::words() const {
  const Values& v = *values_;
  ParsedValues words;
  v.refuse_contradictions();
  words.model_is_path = model_path().has_value();
  if (v.gpu_memory) check_gpu_memory(*v.gpu_memory);
  if (v.total_params && *v.total_params > kMaxBillions) {
    throw Error(ErrorKind::kUsage, fmt::format("--total-params is {}; the unit is billions: use "
                                               "8.0 for a model with 8,000,000,000 parameters",
                                               *v.total_params));
  }
  if (v.total_params && v.model) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--model {} and --total-params {} each name a model; give one of them",
                            *v.model, *v.total_params));
  }
  if (v.trainable_params &&
      (!v.total_params || *v.trainable_params <= 0 || *v.trainable_params > *v.total_params)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--trainable-params is {}; it is a part of --total-params, in billions "
                            "as well: --total-params 8.0 --trainable-params 0.5",
                            *v.trainable_params));
  }
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    if (v.texts[i])
      words.texts.emplace_back(kTexts[i].key, value_of(first_name(kTexts[i].names), *v.texts[i]));
  }
  if (v.fsdp) words.fsdp = value_of("--fsdp", *v.fsdp);
  for (const std::string& set : v.sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format(
              "--set {}: write --set key.path=value, for example --set training.batch_size=8",
              set));
    }
    const std::string key = set.substr(0, equals);
    words.sets.emplace_back(key, value_of("--set " + key + "=", set.substr(equals + 1)));
  }
  return words;
}

Node JobOptions::edited(Node job, const ParsedValues& words) const {
  values_->apply_model(words.model_is_path, job);
  values_->apply_plain(words, job);
  values_->apply_extents(job);
  values_->apply_precision(job);
  values_->apply_training(job);
  values_->apply_parallel(words, job);
  values_->apply_target(job);
  for (const auto& [key, value] : words.sets) job.assign(key, value);
  return job;
}

Node JobOptions::document(Node job) const { return edited(std::move(job), words()); }

std::function<Node(Node)> JobOptions::editor() const {
  return [this, words = words()](Node job) { return edited(std::move(job), words); };
}

std::string JobOptions::assumption() const {
  const std::int64_t last = values_->last_trained_blocks();
  if (last == 0) return "";
  return fmt::format(
      "--trainable-params {}: the last {} blocks are taken to be trained; adapters are --lora-rank",
      *values_->trainable_params, last);
}

bool JobOptions::divides_model() const { return values_->multi_gpu.value_or(false); }

bool JobOptions::sets_batch_size() const { return values_->integers.front().has_value(); }

bool JobOptions::sets_precision() const { return values_->has_precision_flag(); }

bool JobOptions::any_given() const {
  const auto names_model = [](const std::string& set) { return set.starts_with("model."); };
  return values_->model.has_value() || values_->total_params.has_value() ||
         values_->hidden_dim.has_value() ||
         std::any_of(values_->sets.begin(), values_->sets.end(), names_model);
}

}  // namespace memfathom
