#include "cli/estimate/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <system_error>

#include "core/error.h"
#include "estimator/readers/named_model.h"
#include "estimator/readers/reading.h"

namespace memfathom {
namespace {

// A flag whose value goes to one key of the job as it is.
struct Plain {
  const char* names;
  const char* key;
};

constexpr auto kIntegers = std::to_array<Plain>({
    {"--batch-size,--micro-batch-size,--per-device-train-batch-size", "training.batch_size"},
    {"--sequence-length,--seq-length,--seq-len,--max-seq-length,--max-length",
     "training.sequence_length"},
    {"--image-size", "training.image_size"},
    {"--num-frames", "training.num_frames"},
    {"--num-images", "training.num_images"},
    {"--new-tokens", "training.new_tokens"},
    {"--gradient-accumulation-steps", "training.gradient_accumulation_steps"},
    {"--zero-stage", "parallel.zero_stage"},
    {"--num-gpus", "parallel.num_gpus"},
    {"--tensor-parallel-size", "parallel.tensor"},
    {"--pipeline-parallel-size", "parallel.pipeline"},
});

constexpr auto kTexts = std::to_array<Plain>({
    {"--attention,--attn-implementation", "training.attention"},
    {"--optimizer,--optim", "training.optimizer"},
    {"--quantization", "training.quantization"},
    {"--mode", "training.mode"},
    {"--margin", "target.margin"},
    {"--calibration", "target.calibration"},
});

// What a word on the command line would be in a YAML file.
Node value_of(const std::string& text) { return parse_yaml(text, "command line", 0); }

std::string precision_name(std::string dtype) {
  constexpr std::string_view kTorch = "torch.";  // as torch prints it
  if (dtype.starts_with(kTorch)) dtype.erase(0, kTorch.size());
  if (dtype == "float32" || dtype == "fp32") return "fp32";
  if (dtype == "float16" || dtype == "fp16" || dtype == "half") return "fp16";
  if (dtype == "bfloat16" || dtype == "bf16") return "bf16";
  return dtype;
}

// "24" of the old calculators is GiB; a size with a unit is taken as it is.
std::string memory_size(const std::string& text) {
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  return bare ? text + "GiB" : text;
}

constexpr double kMostBillions = 1e6;  // of parameters: more was meant as a plain count

}  // namespace

struct JobOptions::Values {
  std::array<std::optional<std::int64_t>, kIntegers.size()> integers;
  std::array<std::optional<std::string>, kTexts.size()> texts;
  std::optional<std::string> model, dtype, mixed_precision, preference, reference, fsdp, gpu,
      gpu_memory;
  std::optional<double> total_params;
  std::optional<std::int64_t> height, width, hidden_dim, num_layers, lora_rank, device_id;
  std::optional<bool> use_fp16, gradient_checkpointing, load_in_4bit, load_in_8bit, cpu_offload;
  std::vector<std::string> target_modules, sets;
};

JobOptions::JobOptions() : values_(std::make_unique<Values>()) {}
JobOptions::~JobOptions() = default;

void JobOptions::declare(OptionParser& parser) {
  Values& v = *values_;
  for (std::size_t i = 0; i < kIntegers.size(); ++i)
    parser.option(kIntegers[i].names, v.integers[i]);
  for (std::size_t i = 0; i < kTexts.size(); ++i) parser.option(kTexts[i].names, v.texts[i]);
  parser.option("--model,--preset,--model-path", v.model);
  parser.option("--dtype,--precision", v.dtype);
  parser.option("--mixed-precision", v.mixed_precision);
  parser.option("--preference", v.preference);
  parser.option("--reference", v.reference);
  parser.option("--fsdp", v.fsdp);
  parser.option("--gpu", v.gpu);
  parser.option("--total-params", v.total_params);
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
  parser.list_option("--target-modules", v.target_modules);
  parser.option("--set", v.sets);
}

std::optional<std::string> JobOptions::model_path() const {
  std::error_code ignored;  // a name too long to be a path is no path
  if (!values_->model || std::filesystem::exists(*values_->model, ignored)) return values_->model;
  // A pipeline of the local cache has no config.json of its own to be named in a job.
  const std::optional<NamedModel> named = find_named_model(*values_->model, huggingface_cache());
  const bool is_pipeline =
      named && named->form == "config" &&
      std::filesystem::exists(std::filesystem::path(named->value) / "model_index.json", ignored);
  return is_pipeline ? std::optional(named->value) : std::nullopt;
}

Node JobOptions::document(Node job) const {
  const Values& v = *values_;
  const auto assign = [&](std::string_view key, Node value) { job.assign(key, std::move(value)); };
  // Another model takes the place of the files'; what learns of it stays.
  const auto say_model = [&](const char* form, Node value) {
    Node model = Node::map();
    if (const Node* train = value_at(job, "model.train")) model.set("train", *train);
    model.set(form, std::move(value));
    assign("model", std::move(model));
  };
  if (v.model && !model_path()) say_model("preset", Node::string(*v.model));
  if (v.total_params && *v.total_params > kMostBillions) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--total-params is {}; it counts billions: write 8.0 for a model of "
                            "8,000,000,000 parameters",
                            *v.total_params));
  }
  if (v.total_params) say_model("parameters", Node::number(*v.total_params * 1e9));
  for (std::size_t i = 0; i < kIntegers.size(); ++i) {
    if (v.integers[i]) assign(kIntegers[i].key, Node::integer(*v.integers[i]));
  }
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    if (v.texts[i]) assign(kTexts[i].key, value_of(*v.texts[i]));
  }
  if (v.height || v.width) {
    Node size = Node::list();
    size.append(Node::integer(v.height.value_or(v.width.value_or(0))));
    size.append(Node::integer(v.width.value_or(v.height.value_or(0))));
    assign("training.image_size", std::move(size));
  }
  if (v.hidden_dim) assign("model.config.hidden_size", Node::integer(*v.hidden_dim));
  if (v.num_layers) assign("model.config.num_hidden_layers", Node::integer(*v.num_layers));
  // Who says a precision means the whole of it.
  if (const Node* training = job.find("training");
      training != nullptr && training->is_map() && says_precision()) {
    Node changed = *training;
    changed.erase("autocast");
    job.set("training", std::move(changed));
  }
  if (v.dtype) assign("training.precision", Node::string(precision_name(*v.dtype)));
  if (v.use_fp16 && *v.use_fp16) assign("training.precision", Node::string("amp-fp16"));
  if (v.mixed_precision && *v.mixed_precision != "no") {
    assign("training.precision", Node::string("amp-" + precision_name(*v.mixed_precision)));
  }
  if (v.preference) assign("training.preference.method", Node::string(*v.preference));
  if (v.reference) assign("training.preference.reference", Node::string(*v.reference));
  if (v.gradient_checkpointing)
    assign("training.gradient_checkpointing", Node::boolean(*v.gradient_checkpointing));
  if (v.lora_rank) assign("training.lora.rank", Node::integer(*v.lora_rank));
  if (!v.target_modules.empty()) {
    Node targets = Node::list();
    for (const std::string& words : v.target_modules) {
      std::istringstream listed(words);
      for (std::string target; std::getline(listed, target, ',');)
        if (!target.empty()) targets.append(Node::string(target));
    }
    assign("training.lora.targets", std::move(targets));
  }
  if (v.load_in_4bit && *v.load_in_4bit) assign("training.quantization", Node::string("nf4"));
  if (v.load_in_8bit && *v.load_in_8bit) assign("training.quantization", Node::string("int8"));
  if (v.fsdp) assign("parallel.fsdp", value_of(*v.fsdp));
  if (v.cpu_offload && *v.cpu_offload) {
    assign("parallel.offload.optimizer", Node::string("cpu"));
    // ZeRO-1 and ZeRO-2 have their weights on the card.
    const Node* stage = value_at(job, "parallel.zero_stage");
    if (stage == nullptr || stage->as_int() % 3 == 0)
      assign("parallel.offload.parameters", Node::string("cpu"));
  }
  if (v.gpu) assign("target.gpu", Node::string(*v.gpu));  // "4090" is a name
  if (v.gpu_memory) assign("target.memory", Node::string(memory_size(*v.gpu_memory)));
  if (v.device_id) assign("target.device", Node::string(fmt::format("cuda:{}", *v.device_id)));
  for (const std::string& set : v.sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format(
              "--set {}: write --set key.path=value, for example --set training.batch_size=8",
              set));
    }
    assign(set.substr(0, equals), value_of(set.substr(equals + 1)));
  }
  return job;
}

bool JobOptions::says_precision() const {
  const auto sets_it = [](const std::string& set) {
    return set.starts_with("training.precision=");
  };
  return values_->dtype || values_->use_fp16 || values_->mixed_precision ||
         std::any_of(values_->sets.begin(), values_->sets.end(), sets_it);
}

bool JobOptions::any_given() const {
  return values_->model.has_value() || values_->total_params.has_value() ||
         values_->hidden_dim.has_value();
}

}  // namespace memfathom
