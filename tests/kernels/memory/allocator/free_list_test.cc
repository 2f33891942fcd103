#include "kernels/memory/allocator/free_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace memfathom {
namespace {

using Key = FreeList::Key;

std::vector<Key> forwards(const FreeList& list) {
  std::vector<Key> keys;
  for (auto p = list.begin(); p != list.end(); p = list.next(p)) keys.push_back(list.at(p));
  return keys;
}

std::vector<Key> backwards(const FreeList& list) {
  std::vector<Key> keys;
  for (auto p = list.previous(list.end()); p != list.end(); p = list.previous(p)) {
    keys.push_back(list.at(p));
  }
  return keys;
}

void expect_equal(const FreeList& list, const std::set<Key>& expected) {
  const std::vector<Key> ascending(expected.begin(), expected.end());
  ASSERT_TRUE(forwards(list) == ascending);
  ASSERT_TRUE(backwards(list) == std::vector<Key>(expected.rbegin(), expected.rend()));
  ASSERT_EQ(list.size(), expected.size());
}

TEST(FreeListTest, OrdersBySizeThenAddress) {
  FreeList list;
  list.insert(FreeList::key(1024, 512, 1));
  list.insert(FreeList::key(512, 4096, 2));
  list.insert(FreeList::key(512, 1024, 3));
  list.insert(FreeList::key(1536, 0, 4));
  std::vector<std::uint32_t> blocks;
  for (const Key key : forwards(list)) blocks.push_back(FreeList::block_of(key));
  EXPECT_EQ(blocks, (std::vector<std::uint32_t>{3, 2, 1, 4}));
}

TEST(FreeListTest, LowerBoundFindsTheSmallestSufficientSizeAtTheLowestAddress) {
  FreeList list;
  EXPECT_EQ(list.lower_bound(FreeList::key(512, 0, 0)), list.end());
  list.insert(FreeList::key(2048, 8192, 1));
  list.insert(FreeList::key(2048, 512, 2));
  list.insert(FreeList::key(4096, 1024, 3));
  EXPECT_EQ(FreeList::block_of(list.at(list.lower_bound(FreeList::key(1024, 0, 0)))), 2u);
  EXPECT_EQ(FreeList::block_of(list.at(list.lower_bound(FreeList::key(2560, 0, 0)))), 3u);
  EXPECT_EQ(list.lower_bound(FreeList::key(4608, 0, 0)), list.end());
}

TEST(FreeListTest, HoldsTheLargestSizeAndAddress) {
  FreeList list;
  const std::uint64_t largest = FreeList::kLimit - 512;
  const Key key = FreeList::key(largest, largest, 0xfffffffe);
  list.insert(FreeList::key(512, 0, 0));
  list.insert(key);
  EXPECT_TRUE(list.at(list.lower_bound(FreeList::key(largest, 0, 0))) == key);
  list.erase(key);
  EXPECT_EQ(list.size(), 1u);
}

TEST(FreeListTest, EqualsASetWhileItGrowsAndShrinksThroughSeveralLevels) {
  // 40,000 keys are three levels of 32-key nodes; every phase is checked as a whole.
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::mt19937_64 random(seed);
    FreeList list;
    std::set<Key> expected;
    std::vector<Key> keys;
    const std::uint64_t sizes = seed == 1 ? 1 : seed == 2 ? 50 : 1 << 20;
    for (const bool growing : {true, false, true, false}) {
      for (int step = 0; step < 40000; ++step) {
        if (random() % 10 < (growing ? 9u : 1u) || keys.empty()) {
          const Key key = FreeList::key(512 * (1 + random() % sizes), 512 * (random() % (1 << 30)),
                                        static_cast<std::uint32_t>(step));
          if (!expected.insert(key).second) continue;
          keys.push_back(key);
          list.insert(key);
        } else {
          const std::size_t i = random() % keys.size();
          list.erase(keys[i]);
          expected.erase(keys[i]);
          keys[i] = keys.back();
          keys.pop_back();
        }
        const Key probe = FreeList::key(512 * (random() % (sizes + 2)), 0, 0);
        const auto found = list.lower_bound(probe);
        const auto wanted = expected.lower_bound(probe);
        ASSERT_EQ(found == list.end(), wanted == expected.end());
        if (wanted != expected.end()) {
          ASSERT_TRUE(list.at(found) == *wanted);
        }
      }
      ASSERT_NO_FATAL_FAILURE(expect_equal(list, expected));
    }
    while (!keys.empty()) {
      list.erase(keys.back());
      keys.pop_back();
    }
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.begin(), list.end());
  }
}

TEST(FreeListTest, KeepsAscendingAndDescendingInsertionsInOrder) {
  for (const bool ascending : {true, false}) {
    FreeList list;
    std::set<Key> expected;
    for (std::uint32_t i = 0; i < 5000; ++i) {
      const Key key = FreeList::key(512 * std::uint64_t{ascending ? i + 1 : 5000 - i}, 0, i);
      list.insert(key);
      expected.insert(key);
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(list, expected));
    while (!expected.empty()) {  // from the front, which empties leaf after leaf
      list.erase(*expected.begin());
      expected.erase(expected.begin());
      if (expected.size() % 500 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_equal(list, expected));
      }
    }
  }
}

}  // namespace
}  // namespace memfathom
