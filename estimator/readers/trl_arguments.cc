// What TRL's scripts keep beside the Trainer's arguments: the model's type and attention, its
// adapters, and the method of preference.
#include <fmt/format.h>

#include <array>
#include <string>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

bool has_any(const Node& tree, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (value_at(tree, key) != nullptr) return true;
  }
  return false;
}

// What TRL's configurations have by default and the Trainer's do not (its base_config.py and
// model_config.py). Files that say their own are left alone.
void set_trl_defaults(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (!is_trl(tree)) return;
  const auto assume = [&](std::string_view what) {
    parsed.assumptions.push_back(fmt::format("{}: {}, TRL's default", parsed.file, what));
  };
  if (!has_any(tree, {"gradient_checkpointing"})) {
    parsed.set("training.gradient_checkpointing", Node::string("full"));
    assume("gradient_checkpointing is on");
  }
  if (!has_any(tree, {"bf16", "fp16"})) {
    parsed.set("training.precision", Node::string("amp-bf16"));
    assume("bf16");
  }
  if (!has_any(tree, {"dtype", "torch_dtype", "load_in_4bit", "load_in_8bit"}))
    assume("no dtype: the weights are loaded in float32");
}

// "bfloat16" beside `bf16: true`: weights in that type, and autocast over them.
void set_stored_type(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  std::string type = text_at(tree, "dtype", text_at(tree, "torch_dtype").c_str());
  if (type.starts_with("torch.")) type.erase(0, 6);
  if (!type.empty() && type != "auto" && type != "float32" && type != "bfloat16" &&
      type != "float16") {
    leave_open(value_at(tree, "dtype") != nullptr ? "dtype" : "torch_dtype", "precision",
               fmt::format("{}: weights in {}; those of the model's own type are counted",
                           parsed.file, type),
               parsed);
    return;
  }
  if (type != "bfloat16" && type != "float16") return;
  const char* compute = is_true_at(tree, "bf16") ? "bf16" : is_true_at(tree, "fp16") ? "fp16" : "";
  std::erase_if(parsed.settings,
                [](const KeyChange& change) { return change.key == "training.precision"; });
  parsed.set("training.precision", Node::string(type == "bfloat16" ? "bf16" : "fp16"));
  if (*compute != '\0') parsed.set("training.autocast", Node::string(compute));
}

// TRL trains adapters only with use_peft; another script may with a rank alone.
void leave_ranks_open(ParsedFile& parsed) {
  if (has_any(parsed.content, {"use_peft", "trains_adapters"}) || is_trl(parsed.content)) return;
  for (const char* key : {"lora_r", "lora_target_modules", "target_modules", "r"}) {
    if (value_at(parsed.content, key) == nullptr) continue;
    leave_open(key, "adapters",
               fmt::format("{}: {} without use_peft: nothing says whether adapters are trained; "
                           "full training is counted",
                           parsed.file, key),
               parsed);
    return;
  }
}

// "all" of scripts that look for the linear layers themselves.
Node all_or_named(const Node& targets) {
  const bool all = targets.is_string() && targets.as_string() == "all";
  return all ? Node::string("all-linear") : lora_targets(targets);
}

// TRL's ModelConfig has a rank by default; that of another script is not known.
void set_rank(const Node* rank, ParsedFile& parsed) {
  constexpr std::int64_t kDefault = 16;
  parsed.set("training.lora.rank", rank != nullptr ? *rank : Node::integer(kDefault));
  if (rank != nullptr) return;
  if (is_true_at(parsed.content, "use_peft")) {
    parsed.assumptions.push_back(
        fmt::format("{}: adapters of rank {}, TRL's default", parsed.file, kDefault));
  } else {
    leave_open("trains_adapters", "adapters",
               fmt::format("{}: adapters are asked for, and no rank is said; rank {} is counted",
                           parsed.file, kDefault),
               parsed);
  }
}

// `trains_adapters` is what the commands of other scripts call --use_lora, --lora_enable, ...
bool set_adapters(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  // Unsloth's scripts say PEFT's own words beside the arguments.
  const bool own_words = value_at(tree, "r") != nullptr && value_at(tree, "lora_alpha") != nullptr;
  const bool is_asked = is_true_at(tree, "use_peft") || is_true_at(tree, "trains_adapters");
  if (!is_asked && !own_words) {
    leave_ranks_open(parsed);
    return false;
  }
  set_rank(value_at(tree, own_words ? "r" : "lora_r"), parsed);
  const Node* dropout = value_at(tree, "lora_dropout");
  parsed.set("training.lora.dropout", dropout != nullptr ? *dropout : Node::number(0.05));
  const Node* targets = value_at(tree, own_words ? "target_modules" : "lora_target_modules");
  if (targets == nullptr) targets = value_at(tree, "target_modules");
  if (targets != nullptr) parsed.set("training.lora.targets", all_or_named(*targets));
  return true;
}

void set_quantization(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (is_true_at(tree, "load_in_4bit")) {
    const bool twice = is_true_at(tree, "use_bnb_nested_quant");
    parsed.set("training.quantization", Node::string(twice ? "nf4-double" : "nf4"));
  } else if (is_true_at(tree, "load_in_8bit")) {
    parsed.set("training.quantization", Node::string("int8"));
  }
}

// Answers that are generated in training, and a server for them on the same GPU.
void set_generated(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  withhold("num_generations", "memory",
           fmt::format("{}: answers that are generated in training, and their scores; a training "
                       "step over prompts and answers is counted",
                       parsed.file),
           parsed);
  if (is_true_at(tree, "use_vllm") && text_at(tree, "vllm_mode", "server") == "colocate") {
    const Node* share = value_at(tree, "vllm_gpu_memory_utilization");
    leave_open("use_vllm", "memory",
               fmt::format("{}: vLLM on the same GPU, which takes {} of it while it is awake",
                           parsed.file, share != nullptr ? share->shown() : "0.3"),
               parsed);
  }
  const Node* prompt = value_at(tree, "max_prompt_length");
  const Node* answer = value_at(tree, "max_completion_length");
  if (prompt != nullptr && answer != nullptr && prompt->is_int() && answer->is_int())
    parsed.set("training.sequence_length",
               Node::integer(prompt->as_int(1, 1 << 30) + answer->as_int(1, 1 << 30)));
}

// The arguments of TRL's trainers tell them apart: `beta` is of those that compare answers.
void set_preference(bool adapters, ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (has_any(tree, {"num_generations", "max_completion_length", "response_length"})) {
    set_generated(parsed);
    return;
  }
  if (has_any(tree, {"teacher_model_name_or_path"})) {
    leave_open("teacher_model_name_or_path", "model",
               fmt::format("{}: the teacher {}; the student alone is counted (--frozen-copy for a "
                           "teacher of the same size)",
                           parsed.file, value_at(tree, "teacher_model_name_or_path")->shown()),
               parsed);
    return;
  }
  if (!has_any(tree, {"beta"})) return;
  if (has_any(tree, {"desirable_weight", "undesirable_weight"})) {
    withhold("desirable_weight", "model",
             fmt::format("{}: KTO's reference; supervised training is counted", parsed.file),
             parsed);
    return;
  }
  const std::string loss = text_at(tree, "loss_type");
  const bool alone = loss == "orpo" || loss == "simpo" || loss == "cpo" ||
                     is_true_at(tree, "reference_free") ||
                     has_any(tree, {"simpo_gamma", "cpo_alpha", "gamma_beta_ratio"}) ||
                     parsed.file.find("orpo") != std::string::npos;
  const char* reference = alone                                          ? "none"
                          : is_true_at(tree, "precompute_ref_log_probs") ? "precomputed"
                          : adapters                                     ? "disabled-adapter"
                                                                         : "model";
  parsed.set("training.preference.method", Node::string("dpo"));
  parsed.set("training.preference.reference", Node::string(reference));
  parsed.assumptions.push_back(
      fmt::format("{}: `beta` is of TRL's trainers of preferences: pairs of answers, reference {}",
                  parsed.file, reference));
  if (!has_any(tree, {"max_length", "max_seq_length", "model_max_length"}))
    parsed.set("training.sequence_length", Node::integer(1024));
}

}  // namespace

bool is_trl(const Node& tree) {
  return has_any(tree, {"model_name_or_path"}) &&
         has_any(tree, {"use_peft", "packing", "assistant_only_loss", "completion_only_loss",
                        "dataset_mixture", "num_generations", "max_completion_length", "loss_type",
                        "beta"}) &&
         !has_any(tree, {"max_seq_length", "r"});  // of releases without these defaults; Unsloth's
}

bool loads_float32(const Node& tree) {
  const std::string type = text_at(tree, "dtype", text_at(tree, "torch_dtype").c_str());
  return type == "float32" || (type.empty() && is_trl(tree));
}

void read_trl_arguments(ParsedFile& parsed) {
  set_trl_defaults(parsed);
  set_stored_type(parsed);
  const std::string attention = text_at(parsed.content, "attn_implementation");
  if (!attention.empty()) set_attention(attention, parsed);
  const bool adapters = set_adapters(parsed);
  set_quantization(parsed);
  set_preference(adapters, parsed);
}

}  // namespace memfathom
