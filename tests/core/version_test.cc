#include "core/version.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

TEST(VersionTest, ReadsUpToThreeNumbersAndIgnoresTheRest) {
  EXPECT_EQ(Version::parse("2.6.1+cu124"), (Version{2, 6, 1}));
  EXPECT_EQ(Version::parse("4.51"), (Version{4, 51, 0}));
  EXPECT_EQ(Version::parse("5"), (Version{5, 0, 0}));
  EXPECT_EQ(Version::parse("2.10.0a0"), (Version{2, 10, 0}));
}

TEST(VersionTest, RefusesInvalidVersions) {
  for (const char* text : {"", "latest", "v2.1", "-1.2", "0.0.3", ".5"})
    EXPECT_FALSE(Version::parse(text)) << text;
}

TEST(VersionTest, ComparesNumberByNumber) {
  EXPECT_LT((Version{4, 9}), (Version{4, 38}));
  EXPECT_LT((Version{4, 57, 3}), (Version{5, 0}));
  EXPECT_GT((Version{0, 43, 2}), (Version{0, 43}));
  EXPECT_EQ((Version{2, 6, 1}.series()), (Version{2, 6}));
}

TEST(VersionTest, ReadsTheLastReleaseOfASeries) {
  EXPECT_GT(Version::parse_latest("0.43"), (Version{0, 43, 2}));
  EXPECT_LT(Version::parse_latest("0.43"), (Version{0, 44}));
  EXPECT_EQ(Version::parse_latest("0.43.1"), (Version{0, 43, 1}));
}

}  // namespace
}  // namespace memfathom
