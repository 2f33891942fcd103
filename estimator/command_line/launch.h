// Launch: the program that a command line starts, without the launchers in front of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/command_line/shell.h"

namespace memfathom {

struct Launch {
  std::string launcher;  // python, torchrun, accelerate, deepspeed; empty: the program itself
  std::string program;   // "train.py", "verl.trainer.main_ppo", "swift", "trl"
  std::string action;    // of a tool that has several: "sft" of `trl sft`
  std::vector<ShellWord> launcher_arguments;
  std::vector<ShellWord> scheduler_arguments;  // srun's
  std::vector<ShellWord> arguments;            // the program's own
  bool is_training = false;                    // by its name
};

// Nothing if no program is started that could train a model.
std::optional<Launch> find_launch(const ShellCommand& command);

}  // namespace memfathom
