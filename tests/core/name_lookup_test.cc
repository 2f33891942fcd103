#include "core/name_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

const std::vector<NamedEntry> kAll{{"abcd1111", "GPU/pytorch"},
                                   {"abcd2222", "GPU/pytorch"},
                                   {"abcd3333", "GPU/pytorch", false},
                                   {"feed0000", "abcd1"},
                                   {"0bad0000", "refused", false}};

TEST(LookupTest, PrefersTheNewestUsableEntryOfAName) {
  EXPECT_THAT(find_by_name_or_id(kAll, "GPU/pytorch", "things"), Optional(1U));
  EXPECT_THAT(find_by_name_or_id(kAll, "refused", "things"), Optional(4U));
}

TEST(LookupTest, PrefersAnExactMatchToAnIdPrefix) {
  EXPECT_THAT(find_by_name_or_id(kAll, "abcd3333", "things"), Optional(2U));
  EXPECT_THAT(find_by_name_or_id(kAll, "abcd1", "things"), Optional(3U));
  EXPECT_THAT(find_by_name_or_id(kAll, "abcd11", "things"), Optional(0U));
}

TEST(LookupTest, RequiresAtLeastFourDigitsOfAnIdPrefix) {
  EXPECT_FALSE(find_by_name_or_id(kAll, "fee", "things"));
  EXPECT_FALSE(find_by_name_or_id(kAll, "card", "things"));
  EXPECT_FALSE(find_by_name_or_id(kAll, "", "things"));
  EXPECT_THAT(find_by_name_or_id(kAll, "feed", "things"), Optional(3U));
}

TEST(LookupTest, RefusesAnAmbiguousIdPrefixInOneSentence) {
  try {
    find_by_name_or_id(kAll, "abcd", "baselines");
    FAIL() << "it was answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("several baselines have an id that begins with abcd"));
  }
}

TEST(LookupTest, IgnoresDuplicateEntries) {
  const std::vector<NamedEntry> twice{{"abcd1111", "a"}, {"abcd1111", "a"}};
  EXPECT_THAT(find_by_name_or_id(twice, "abcd", "things"), Optional(1U));
}

}  // namespace
}  // namespace memfathom
