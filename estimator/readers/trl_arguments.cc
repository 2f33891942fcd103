// What TRL's scripts keep beside the Trainer's arguments: the model's type and attention, its
// adapters, and the method of preference.
#include <fmt/format.h>

#include <array>
#include <string>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

// "bfloat16" beside `bf16: true`: weights in that type, and autocast over them.
void set_stored_type(Reading& reading) {
  const Node& tree = reading.content;
  std::string type = text_at(tree, "dtype", text_at(tree, "torch_dtype").c_str());
  if (type.starts_with("torch.")) type.erase(0, 6);
  if (type != "bfloat16" && type != "float16") return;
  const char* compute = is_true_at(tree, "bf16") ? "bf16" : is_true_at(tree, "fp16") ? "fp16" : "";
  std::erase_if(reading.settings,
                [](const KeyChange& change) { return change.key == "training.precision"; });
  reading.set("training.precision", Node::string(type == "bfloat16" ? "bf16" : "fp16"));
  if (*compute != '\0') reading.set("training.autocast", Node::string(compute));
}

bool set_adapters(Reading& reading) {
  const Node& tree = reading.content;
  // Unsloth's scripts say PEFT's own words beside the arguments.
  const bool own_words = value_at(tree, "r") != nullptr && value_at(tree, "lora_alpha") != nullptr;
  if (!is_true_at(tree, "use_peft") && !own_words) return false;
  const Node* rank = value_at(tree, own_words ? "r" : "lora_r");
  reading.set("training.lora.rank", rank != nullptr ? *rank : Node::integer(16));
  const Node* dropout = value_at(tree, "lora_dropout");
  reading.set("training.lora.dropout", dropout != nullptr ? *dropout : Node::number(0.05));
  if (const Node* targets = value_at(tree, own_words ? "target_modules" : "lora_target_modules"))
    reading.set("training.lora.targets", lora_targets(*targets));
  return true;
}

void set_quantization(Reading& reading) {
  const Node& tree = reading.content;
  if (is_true_at(tree, "load_in_4bit")) {
    const bool twice = is_true_at(tree, "use_bnb_nested_quant");
    reading.set("training.quantization", Node::string(twice ? "nf4-double" : "nf4"));
  } else if (is_true_at(tree, "load_in_8bit")) {
    reading.set("training.quantization", Node::string("int8"));
  }
}

bool has_any(const Node& tree, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (value_at(tree, key) != nullptr) return true;
  }
  return false;
}

// Answers that are generated in training, and a server for them on the same card.
void set_generated(Reading& reading) {
  const Node& tree = reading.content;
  reading.not_modelled.push_back(
      fmt::format("{}: answers that are generated in training, and their scores; a training step "
                  "over prompts and answers is counted",
                  reading.file));
  if (is_true_at(tree, "use_vllm") && text_at(tree, "vllm_mode", "server") == "colocate") {
    const Node* share = value_at(tree, "vllm_gpu_memory_utilization");
    reading.not_modelled.push_back(
        fmt::format("{}: vLLM on the same card, which takes {} of it while it is awake",
                    reading.file, share != nullptr ? share->shown() : "0.3"));
  }
  const Node* prompt = value_at(tree, "max_prompt_length");
  const Node* answer = value_at(tree, "max_completion_length");
  if (prompt != nullptr && answer != nullptr && prompt->is_int() && answer->is_int())
    reading.set("training.sequence_length",
                Node::integer(prompt->as_int(1, 1 << 30) + answer->as_int(1, 1 << 30)));
}

// The arguments of TRL's trainers tell them apart: `beta` is of those that compare answers.
void set_preference(bool adapters, Reading& reading) {
  const Node& tree = reading.content;
  if (has_any(tree, {"num_generations", "max_completion_length", "response_length"})) {
    set_generated(reading);
    return;
  }
  if (has_any(tree, {"teacher_model_name_or_path"})) {
    reading.not_modelled.push_back(
        fmt::format("{}: the teacher {}; the student alone is counted (--frozen-copy for a teacher "
                    "of the same size)",
                    reading.file, value_at(tree, "teacher_model_name_or_path")->shown()));
    return;
  }
  if (!has_any(tree, {"beta"})) return;
  if (has_any(tree, {"desirable_weight", "undesirable_weight"})) {
    reading.not_modelled.push_back(
        fmt::format("{}: KTO's reference; supervised training is counted", reading.file));
    return;
  }
  const std::string loss = text_at(tree, "loss_type");
  const bool alone =
      loss == "orpo" || loss == "simpo" || loss == "cpo" || is_true_at(tree, "reference_free") ||
      has_any(tree, {"simpo_gamma", "cpo_alpha"}) || reading.file.find("orpo") != std::string::npos;
  const char* reference = alone                                         ? "none"
                          : is_true_at(tree, "precompute_ref_log_probs") ? "precomputed"
                          : adapters                                    ? "disabled-adapter"
                                                                        : "model";
  reading.set("training.preference.method", Node::string("dpo"));
  reading.set("training.preference.reference", Node::string(reference));
  reading.assumptions.push_back(
      fmt::format("{}: `beta` is of TRL's trainers of preferences: pairs of answers, reference {}",
                  reading.file, reference));
  if (!has_any(tree, {"max_length"})) reading.set("training.sequence_length", Node::integer(1024));
}

}  // namespace

void read_trl_arguments(Reading& reading) {
  set_stored_type(reading);
  const std::string attention = text_at(reading.content, "attn_implementation");
  if (!attention.empty()) set_attention(attention, reading);
  const bool adapters = set_adapters(reading);
  set_quantization(reading);
  set_preference(adapters, reading);
}

}  // namespace memfathom
