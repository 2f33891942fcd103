// The readers of single formats; reading.h chooses among them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "estimator/readers/parsed_file.h"

namespace memfathom {

void read_adapter(ParsedFile& parsed);
void read_training_arguments(ParsedFile& parsed);
// The keys of TRL's scripts beside the Trainer's own.
void read_trl_arguments(ParsedFile& parsed);
// Whether TRL's scripts read these arguments, by keys that only they have.
bool is_trl(const Node& tree);
// Whether they load the weights in float32, as TRL's do unless told otherwise.
bool loads_float32(const Node& tree);
// Of a Trainer's arguments: the pass between iterations, where they ask for one.
void set_evaluation(ParsedFile& parsed);
void read_deepspeed(ParsedFile& parsed);
void read_accelerate(ParsedFile& parsed);
void read_axolotl(ParsedFile& parsed);
void read_llama_factory(ParsedFile& parsed);
bool is_llama_factory(const Node& tree);
bool is_torchtune(const Node& tree);
bool is_llama_factory_v1(const Node& tree);
void read_llama_factory_v1(ParsedFile& parsed);
void read_torchtune(ParsedFile& parsed);
void read_torchtitan(ParsedFile& parsed);
bool is_torchtitan(const Node& tree);
void read_litgpt(ParsedFile& parsed);
bool is_litgpt(const Node& tree);
void read_ms_swift(ParsedFile& parsed);
bool is_ms_swift(const Node& tree);
void read_verl(ParsedFile& parsed);
bool is_verl(const Node& tree);
void read_nemo_automodel(ParsedFile& parsed);
bool is_nemo_automodel(const Node& tree);
void read_nemo_rl(ParsedFile& parsed);
bool is_nemo_rl(const Node& tree);
void read_train_yaml(ParsedFile& parsed);
void read_model_config(ParsedFile& parsed);
// Of a model's config: the bits its weights were stored in.
void read_stored_bits(ParsedFile& parsed);

std::span<const Field> adapter_fields();
std::span<const Field> training_arguments_fields();
std::span<const Field> deepspeed_fields();
std::span<const Field> accelerate_fields();
std::span<const Field> axolotl_fields();
std::span<const Field> llama_factory_fields();
std::span<const Field> torchtune_fields();
std::span<const Field> litgpt_fields();
std::span<const Field> ms_swift_fields();
std::span<const Field> verl_fields();
std::span<const Field> nemo_automodel_fields();
std::span<const Field> nemo_rl_fields();
std::span<const Field> train_yaml_fields();

// Says a change of the job in words of the format that are more than one key and its value: "bf16:
// true, fp16: false". `job` is the whole job after the change. False: nothing was said.
bool write_to_training_arguments(const KeyChange& change, Node& content);
bool write_to_deepspeed(const KeyChange& change, const Node& job, Node& content);
bool write_to_accelerate(const KeyChange& change, Node& content);
bool write_to_axolotl(const KeyChange& change, const Node& job, Node& content);
bool write_to_llama_factory(const KeyChange& change, Node& content);
bool write_to_train_yaml(const KeyChange& change, const Node& job, Node& content);

// The part of a Trainer's or axolotl's file that turns ZeRO on.
Node zero_section(const Node& stage);

// Only so many last blocks learn; null: two.
void set_last_layers(const Node* count, ParsedFile& parsed);

// PEFT's target_modules as a list of names: a pattern over whole paths is read by the names its
// last part allows.
Node lora_targets(const Node& given);

// "flash_attention_2", "sdpa", "eager", "flex_attention", ... as training.attention.
void set_attention(const std::string& name, ParsedFile& parsed);

// FSDP within groups of `shards` GPUs, of which each holds a copy of the model.
void set_hybrid_fsdp(std::int64_t shards, ParsedFile& parsed);

// "full_shard auto_wrap", "SHARD_GRAD_OP", 1: as parallel.fsdp.
void set_fsdp(const Node& value, ParsedFile& parsed);

}  // namespace memfathom
