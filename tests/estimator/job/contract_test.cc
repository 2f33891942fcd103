// docs/contract.md has every key that is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/component.h"
#include "core/library_constants.h"
#include "core/source.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/read_job.h"
#include "estimator/job_model/built_model.h"
#include "estimator/models/stack/layer_types.h"
#include "kernels/framework/layers/transformer_block.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

std::string page(const char* name) {
  std::ifstream file(project_directory() / "docs" / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string contract() { return page("contract.md"); }

// The paragraph or row of a table that starts with `start`; empty if there is none.
std::string part_of(const std::string& text, std::string_view start) {
  const std::size_t begin = text.find("\n" + std::string(start));
  if (begin == std::string::npos) return "";
  const bool is_row = start.starts_with("| ");
  return text.substr(begin, text.find(is_row ? "\n" : "\n\n", begin + 1) - begin);
}

template <NamedEnum E>
void expect_every_name(std::string_view start) {
  const std::string part = part_of(contract(), start);
  for (const std::string_view name : kNamesOf<E>) {
    EXPECT_THAT(part, ContainsRegex("[^a-z0-9-]" + std::string(name) + "[^a-z0-9-]"))
        << "after " << start;
  }
}

TEST(ContractTest, NamesEveryKeyOfTraining) {
  const std::string text = contract();
  for (const std::string_view key : training_keys())
    EXPECT_THAT(text, HasSubstr("`" + std::string(key) + "`"));
}

TEST(ContractTest, NamesEveryValueOfAKey) {
  expect_every_name<Mode>("| `mode` |");
  expect_every_name<OptimizerName>("| `optimizer` |");
  expect_every_name<OptimizerForm>("| `optimizer` |");
  expect_every_name<Checkpointing>("| `gradient_checkpointing` |");
  expect_every_name<AttentionImplementation>("| `attention` |");
  expect_every_name<Quantization>("| `quantization` |");
  expect_every_name<Reference>("| `preference` |");
  expect_every_name<ZeroGrad>("| `zero_grad` |");
  expect_every_name<KvCache>("| `kv_cache` |");
  expect_every_name<Lengths>("| `lengths` |");
  expect_every_name<ModelPart>("| `part` |");
  expect_every_name<Fsdp>("| `fsdp` |");
  expect_every_name<Backend>("**`allocator`**");
  expect_every_name<ModelLibrary>("**`target`**");
  expect_every_name<BlockStyle>("| transformer_block |");
  expect_every_name<Source>("- `source`");
}

TEST(ContractTest, NamesEveryKeyThatModulesShare) {
  const std::string part = part_of(contract(), "1 to 1000 of them.");
  for (const std::string_view key : loop_keys())
    EXPECT_THAT(part, HasSubstr("`" + std::string(key) + "`"));
}

// A new key belongs here or to loop_keys(): whether a module may override it is never left open.
TEST(ContractTest, EveryTrainingKeyIsOfTheLoopOrOfAModule) {
  static constexpr auto kOfAModule = std::to_array<std::string_view>({"batch_size",
                                                                      "sequence_length",
                                                                      "target_sequence_length",
                                                                      "image_size",
                                                                      "num_frames",
                                                                      "num_images",
                                                                      "freeze",
                                                                      "precision",
                                                                      "autocast",
                                                                      "attention",
                                                                      "gradient_checkpointing",
                                                                      "checkpoint_reentrant",
                                                                      "lora",
                                                                      "quantization",
                                                                      "fused_loss",
                                                                      "padding_mask",
                                                                      "channels_last",
                                                                      "use_cache",
                                                                      "dropout",
                                                                      "label_smoothing",
                                                                      "loss",
                                                                      "evaluation",
                                                                      "kv_cache",
                                                                      "logits_to_keep"});
  std::vector<std::string_view> classified(kOfAModule.begin(), kOfAModule.end());
  classified.insert(classified.end(), loop_keys().begin(), loop_keys().end());
  EXPECT_THAT(training_keys(), testing::UnorderedElementsAreArray(classified));
}

TEST(ContractTest, ThePageOnFittingNamesEveryConstant) {
  const std::string text = page("fitting.md");
  for (const LibraryConstant& constant : kLibraryConstants)
    EXPECT_THAT(text, HasSubstr("`" + std::string(constant.name) + "`"));
}

TEST(ContractTest, NamesEveryTypeOfLayer) {
  const std::string text = contract();
  for (const std::string_view type : layer_types())
    EXPECT_THAT(text, ContainsRegex("\n\\|[^|]*[ ,]" + std::string(type) + "[ ,]"));
}

TEST(ContractTest, NamesEveryComponent) {
  const std::string text = contract();
  for (const std::string_view name : kNamesOf<Component>) EXPECT_THAT(text, HasSubstr(name));
}

}  // namespace
}  // namespace memfathom
