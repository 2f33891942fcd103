// The words of a job (docs/contract.md §3): every value of its enums has one, and is read back by
// it.
#include <gtest/gtest.h>

#include "core/enum_names.h"
#include "estimator/job/job.h"
#include "estimator/readers/parsed_file.h"
#include "kernels/framework/layers/transformer_block.h"

namespace memfathom {
namespace {

template <typename E>
class JobWordTest : public testing::Test {};

using JobEnums = testing::Types<Mode, Lengths, Reference, Fsdp, Backend, Checkpointing, KvCache,
                                ModelLibrary, ModelPart, ZeroGrad, Quantization, OptimizerName,
                                OptimizerForm, AttentionImplementation, BlockStyle, FileFormat>;
TYPED_TEST_SUITE(JobWordTest, JobEnums);

TYPED_TEST(JobWordTest, EveryValueHasAWordThatIsReadBack) {
  static_assert(names_are_complete<TypeParam>());
  for (std::size_t i = 0; i < kEnumNames<TypeParam>.size(); ++i) {
    const auto value = static_cast<TypeParam>(i);
    EXPECT_FALSE(enum_name(value).empty());
    EXPECT_EQ(enum_from_name<TypeParam>(enum_name(value)), value);
  }
}

TEST(JobWordsTest, OtherLibrariesNamesAreUnderstood) {
  EXPECT_EQ(parse_optimizer("adamw_torch_fused"), OptimizerName::kAdamW);
  EXPECT_EQ(parse_optimizer("lion"), OptimizerName::kLion);
  EXPECT_EQ(parse_optimizer_form("for_loop"), OptimizerForm::kForLoop);
  EXPECT_EQ(parse_attention("flash_attention_2"), AttentionImplementation::kFlash);
  EXPECT_EQ(parse_attention("nothing"), std::nullopt);
}

}  // namespace
}  // namespace memfathom
