// Lengths that transformers' example scripts (examples/pytorch) have by default.
#pragma once

namespace memfathom {

struct CommandReading;

// Sets and names that of the command's script where the command says no length.
void set_example_length(CommandReading& reading);

}  // namespace memfathom
