// What a command is for, by the names of its script and its flags: training or something else, of
// the whole model or of adapters.
#pragma once

#include <string>
#include <string_view>

namespace memfathom {

struct CommandReading;

// Throws Error(kInput) where the command tests, evaluates, generates or converts.
void refuse_other_purpose(const CommandReading& reading);

// The kind of adapters that the script's name says ("lora" of train_lora.py); empty: none.
std::string adapter_in_name(std::string_view program);

// Leaves the verdict open where a name or a flag asks for adapters and none were read: what is
// counted is full training.
void leave_unread_adapters_open(CommandReading& reading);

// Leaves the verdict open where neither the script's name nor a flag says that it trains, or where
// the batch is nowhere said and no library's default is known.
void leave_unnamed_open(CommandReading& reading);

}  // namespace memfathom
