// What `trl sft` takes from accelerate: it starts its processes itself.
#pragma once

namespace memfathom {

struct CommandReading;

// Reads --num_processes and --accelerate_config, a file or a name of TRL's package.
void read_trl_launch(CommandReading& reading);

}  // namespace memfathom
