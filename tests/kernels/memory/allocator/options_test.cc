#include "kernels/memory/allocator/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/memory/allocator/rounding.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    parse_allocator_options(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

std::int64_t rounded(std::int64_t size, std::string_view options) {
  return round_request(size, parse_allocator_options(options));
}

TEST(AllocatorOptionsTest, AnEmptyTextGivesPyTorchsDefaults) {
  const AllocatorOptions options = parse_allocator_options("");
  EXPECT_EQ(options, AllocatorOptions{});
  EXPECT_EQ(options.max_split_size, AllocatorOptions::kUnlimited);
  EXPECT_EQ(options.max_non_split_rounding, 20_MiB);
  EXPECT_FALSE(options.expandable_segments);
}

TEST(AllocatorOptionsTest, ReadsPyTorchsOptionText) {
  const AllocatorOptions options = parse_allocator_options(
      "max_split_size_mb:128, expandable_segments:True,max_non_split_rounding_mb:64,backend:native,"
      "release_lock_on_cudamalloc:False,pinned_num_register_threads:8");
  EXPECT_EQ(options.max_split_size, 128_MiB);
  EXPECT_EQ(options.max_non_split_rounding, 64_MiB);
  EXPECT_TRUE(options.expandable_segments);
}

TEST(AllocatorOptionsTest, TreatsALimitBeyondAllMemoryAsUnlimited) {
  EXPECT_EQ(parse_allocator_options("max_split_size_mb:9000000000000").max_split_size,
            AllocatorOptions::kUnlimited);
}

TEST(AllocatorOptionsTest, ReadsOneNumberOfDivisionsForAllSizes) {
  const AllocatorOptions options = parse_allocator_options("roundup_power2_divisions:8");
  for (const std::int64_t divisions : options.roundup_power2_divisions) EXPECT_EQ(divisions, 8);
}

TEST(AllocatorOptionsTest, ReadsDivisionsPerInterval) {
  // Intervals are in MiB: 256 MiB is the eighth doubling of 1 MiB. The first entry also holds below
  // it, ">" from the last one on, and what is not named in between stays off.
  const auto table = parse_allocator_options("roundup_power2_divisions:[256:1,512:2,2048:4,>:8]")
                         .roundup_power2_divisions;
  const std::array<std::int64_t, 16> expected{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 8, 8, 8, 8, 8};
  EXPECT_EQ(table, expected);
}

TEST(AllocatorOptionsTest, ReadsOptionsAfterAList) {
  const AllocatorOptions options =
      parse_allocator_options("roundup_power2_divisions:[64:8,128:4],max_split_size_mb:32");
  EXPECT_EQ(options.roundup_power2_divisions[6], 8);
  EXPECT_EQ(options.roundup_power2_divisions[7], 4);
  EXPECT_EQ(options.roundup_power2_divisions[8], 0);
  EXPECT_EQ(options.max_split_size, 32_MiB);
}

TEST(AllocatorOptionsTest, RefusesUnmodelledOptionsByName) {
  EXPECT_THAT(refusal("garbage_collection_threshold:0.8"),
              HasSubstr("garbage_collection_threshold"));
  EXPECT_THAT(refusal("backend:cudaMallocAsync"), HasSubstr("cudaMallocAsync"));
  EXPECT_THAT(refusal("large_segment_size_mb:200"), HasSubstr("large_segment_size_mb"));
  EXPECT_THAT(refusal("graph_capture_record_stream_reuse:True"),
              HasSubstr("graph_capture_record_stream_reuse"));
}

TEST(AllocatorOptionsTest, RefusesMalformedText) {
  EXPECT_THAT(refusal("max_split_size_mb"), HasSubstr("\":\" is missing"));
  EXPECT_THAT(refusal("max_split_size_mb:"), HasSubstr("max_split_size_mb is missing"));
  EXPECT_THAT(refusal("max_split_size_mb:twenty"), HasSubstr("\"twenty\""));
  EXPECT_THAT(refusal("max_split_size_mb:64x"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("max_split_size_mb:-64"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("max_split_size_mb:99999999999999999999"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("max_split_size_mb:20"), HasSubstr("more than 20"));
  EXPECT_THAT(refusal("max_non_split_rounding_mb:5"), HasSubstr("more than 20"));
  EXPECT_THAT(refusal("expandable_segments:true"), HasSubstr("True or False"));
  EXPECT_THAT(refusal("max_split_size_mb:64;x:1"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("expandable_segments:True backend:native"), HasSubstr("Truebackend"));
  EXPECT_THAT(refusal(",,"), HasSubstr("expected \""));
  EXPECT_THAT(refusal("roundup_power2_divisions:3"), HasSubstr("power of two"));
  EXPECT_THAT(refusal("roundup_power2_divisions:0"), HasSubstr("power of two"));
  EXPECT_THAT(refusal("roundup_power2_divisions:[256:3]"), HasSubstr("power of two or 0"));
  EXPECT_THAT(refusal("roundup_power2_divisions:[200:2]"), HasSubstr("interval 200"));
  EXPECT_THAT(refusal("roundup_power2_divisions:[256:2"), HasSubstr("missing"));
  EXPECT_THAT(refusal("roundup_power2_divisions:[256 2]"), HasSubstr("interval"));
}

TEST(RoundingTest, RoundsTo512BytesByDefault) {
  EXPECT_EQ(rounded(1, ""), 512);
  EXPECT_EQ(rounded(511, ""), 512);
  EXPECT_EQ(rounded(513, ""), 1024);
  EXPECT_EQ(rounded((5 << 20) + 1, ""), (5 << 20) + 512);
}

TEST(RoundingTest, RoundsToTheNextDivisionBetweenPowersOfTwo) {
  constexpr std::string_view kFour = "roundup_power2_divisions:4";
  // Between 1 and 2 MiB four divisions are steps of 256 KiB.
  EXPECT_EQ(rounded((1 << 20) + 1, kFour), (1 << 20) + (256 << 10));
  EXPECT_EQ(rounded(1200 << 10, kFour), 1280 << 10);
  EXPECT_EQ(rounded(1792 << 10, kFour), 1792 << 10);
  EXPECT_EQ(rounded((1792 << 10) + 1, kFour), 2 << 20);
  EXPECT_EQ(rounded(1 << 20, kFour), 1 << 20);  // a power of two stays
  // Up to 4 x 512 B the plain rule holds.
  EXPECT_EQ(rounded(2048, kFour), 2048);
  EXPECT_EQ(rounded(1537, kFour), 2048);
  EXPECT_EQ(rounded(2049, kFour), 2560);  // 2048 + 512
  EXPECT_EQ(rounded(2561, kFour), 3072);
}

TEST(RoundingTest, UsesTheDivisionsOfTheSizesInterval) {
  constexpr std::string_view kList = "roundup_power2_divisions:[1:0,2:2,>:4]";
  EXPECT_EQ(rounded((1 << 20) + 1, kList), (1 << 20) + 512);  // 1 to 2 MiB: off
  EXPECT_EQ(rounded((4 << 20) + 1, kList), 5 << 20);          // from 2 MiB: > fills from there
  EXPECT_EQ(rounded(std::int64_t{100} << 30, kList), 112LL << 30);  // 64 + 3 x 16
  EXPECT_EQ(rounded(600, kList), 1024);
}

TEST(RoundingTest, OneDivisionUsesTheDefaultRule) {
  EXPECT_EQ(rounded((5 << 20) + 1, "roundup_power2_divisions:1"), (5 << 20) + 512);
}

}  // namespace
}  // namespace memfathom
