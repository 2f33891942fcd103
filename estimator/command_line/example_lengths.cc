#include "estimator/command_line/example_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/command_line/reading.h"

namespace memfathom {
namespace {

// The lengths that transformers' example scripts (examples/pytorch) have by default.
struct ExampleLength {
  std::string_view script;  // and those that begin like it: run_qa_beam_search
  std::int64_t tokens;
};

constexpr auto kExampleLengths = std::to_array<ExampleLength>({
    {"run_glue", 128},
    {"run_classification", 128},
    {"run_xnli", 128},
    {"run_clip", 128},
    {"run_ner_no_trainer", 128},
    {"run_swag_no_trainer", 128},
    {"run_qa", 384},
    {"run_seq2seq_qa", 384},
    {"run_plm", 512},
    {"run_clm", 1024},
    {"run_fim", 1024},
    {"run_summarization", 1024},
    {"run_translation", 1024},
});

}  // namespace

void set_example_length(CommandReading& reading) {
  const auto is_length = [](const UnresolvedFlag& flag) {
    return flag.key.find("length") != std::string::npos || flag.key == "block_size";
  };
  const std::vector<UnresolvedFlag>& unresolved = reading.flags.unresolved;
  if (reading.flag("max_length") != nullptr || reading.flag("max_seq_length") != nullptr ||
      std::any_of(unresolved.begin(), unresolved.end(), is_length))
    return;
  const std::string& program = reading.launch.program;
  const std::string_view script = std::string_view(program).substr(program.rfind('/') + 1);
  for (const ExampleLength& example : kExampleLengths) {
    if (!script.starts_with(example.script)) continue;
    reading.assume(fmt::format("{}: no length: the {} tokens that transformers' {} has by default",
                               reading.file, example.tokens, script));
    reading.set_default("max_length", Node::integer(example.tokens));
    return;
  }
}

}  // namespace memfathom
