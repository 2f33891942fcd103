// The readers of single formats; reading.h chooses among them.
#pragma once

#include <span>

#include "estimator/readers/reading.h"

namespace memfathom {

void read_adapter(Reading& reading);
void read_training_arguments(Reading& reading);
void read_deepspeed(Reading& reading);
void read_accelerate(Reading& reading);
void read_axolotl(Reading& reading);
void read_train_yaml(Reading& reading);
void read_model_config(Reading& reading);

std::span<const Field> training_arguments_fields();
std::span<const Field> deepspeed_fields();
std::span<const Field> accelerate_fields();
std::span<const Field> axolotl_fields();
std::span<const Field> train_yaml_fields();

// "full_shard auto_wrap", "SHARD_GRAD_OP", 1: as parallel.fsdp.
void set_fsdp(const Node& value, Reading& reading);

}  // namespace memfathom
