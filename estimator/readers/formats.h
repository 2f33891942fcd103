// The readers of single formats; reading.h chooses among them.
#pragma once

#include <span>
#include <string>

#include "estimator/readers/reading.h"

namespace memfathom {

void read_adapter(Reading& reading);
void read_training_arguments(Reading& reading);
// The keys of TRL's scripts beside the Trainer's own.
void read_trl_arguments(Reading& reading);
// Of a Trainer's arguments: the pass between iterations, where they ask for one.
void set_evaluation(Reading& reading);
void read_deepspeed(Reading& reading);
void read_accelerate(Reading& reading);
void read_axolotl(Reading& reading);
void read_llama_factory(Reading& reading);
bool is_llama_factory_v1(const Node& tree);
void read_llama_factory_v1(Reading& reading);
void read_torchtune(Reading& reading);
void read_train_yaml(Reading& reading);
void read_model_config(Reading& reading);
// Of a model's config: the bits its weights were stored in.
void read_stored_bits(Reading& reading);

std::span<const Field> adapter_fields();
std::span<const Field> training_arguments_fields();
std::span<const Field> deepspeed_fields();
std::span<const Field> accelerate_fields();
std::span<const Field> axolotl_fields();
std::span<const Field> llama_factory_fields();
std::span<const Field> torchtune_fields();
std::span<const Field> train_yaml_fields();

// Says a change of the job in words of the format that are more than one key and its value: "bf16:
// true, fp16: false". `job` is the whole job after the change. False: nothing was said.
bool say_in_training_arguments(const KeyChange& change, Node& content);
bool say_in_deepspeed(const KeyChange& change, const Node& job, Node& content);
bool say_in_accelerate(const KeyChange& change, Node& content);
bool say_in_axolotl(const KeyChange& change, const Node& job, Node& content);
bool say_in_llama_factory(const KeyChange& change, Node& content);
bool say_in_train_yaml(const KeyChange& change, const Node& job, Node& content);

// The part of a Trainer's or axolotl's file that turns ZeRO on.
Node zero_section(const Node& stage);

// Only so many last blocks learn; null: two.
void set_last_layers(const Node* count, Reading& reading);

// PEFT's target_modules as a list of names: a pattern over whole paths is read by the names its
// last part allows.
Node lora_targets(const Node& given);

// "flash_attention_2", "sdpa", "eager", "flex_attention", ... as training.attention.
void set_attention(const std::string& name, Reading& reading);

// "full_shard auto_wrap", "SHARD_GRAD_OP", 1: as parallel.fsdp.
void set_fsdp(const Node& value, Reading& reading);

}  // namespace memfathom
