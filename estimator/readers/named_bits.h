// Named bits: the form in which weights are stored, where only a model's name says it: "-AWQ",
// "-GPTQ-Int8", "-bnb-4bit", "-FP8", "-GGUF".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"
#include "estimator/job/unread_key.h"

namespace memfathom {

struct NamedBits {
  std::string form;   // "AWQ", as the name has it; empty where it says nothing
  Node quantization;  // the job's training.quantization; null where the form is not counted here
};

NamedBits bits_in_name(std::string_view name);

// Counts the weights of the job's model as its `name` says, unless the job itself says how they are
// stored. What cannot be counted leaves the verdict open.
void count_named_bits(const std::string& name, const std::string& file, Node& document,
                      std::vector<std::string>& assumptions, std::vector<UnreadKey>& unread);

}  // namespace memfathom
