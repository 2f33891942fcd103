#include "db/content_hash.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

// The expected digests are hashlib.blake2b(..., digest_size=16) over the fields as Python's struct
// packs them.
TEST(ContentHashTest, IsBlake2bOverLengthsAndTexts) {
  EXPECT_EQ(ContentHash("abc").uid(), "10366aba46518e2b9d040dde242bbc5a");
}

TEST(ContentHashTest, HashesSeveralBlocksAndAllKindsOfFields) {
  ContentHash hash("sample");
  hash.add(std::string(300, 'x'))
      .add(-7)
      .add(0.5)
      .add(std::optional<Bytes>())
      .add(std::optional<Bytes>(Bytes{42}));
  EXPECT_EQ(hash.uid(), "5b880c433964426e5c0c79b2e8a9ba29");
}

TEST(ContentHashTest, HashesAFullLastBlock) {
  EXPECT_EQ(ContentHash(std::string(120, 'x')).uid(), "5200e16c19cefc6ea13557198680947b");
}

TEST(ContentHashTest, DependsOnFieldBoundaries) {
  EXPECT_NE(ContentHash("r").add("ab").add("c").uid(), ContentHash("r").add("a").add("bc").uid());
}

TEST(ContentHashTest, DistinguishesNothingFromZero) {
  EXPECT_NE(ContentHash("r").add(std::optional<Bytes>()).uid(),
            ContentHash("r").add(std::optional<Bytes>(Bytes{0})).uid());
}

}  // namespace
}  // namespace memfathom
