#include "core/on_all_cores.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/error.h"

namespace memfathom {
namespace {

TEST(OnAllCoresTest, DoesEachIndexOnce) {
  std::vector<std::atomic<int>> done(1000);
  on_all_cores(done.size(), [&](std::size_t i) { ++done[i]; });
  for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
  on_all_cores(0, [](std::size_t) { FAIL(); });
}

TEST(OnAllCoresTest, AFailureIsThrownWhenTheRestIsDoneAndTheFirstByIndexWins) {
  std::atomic<int> done{0};
  try {
    on_all_cores(100, [&](std::size_t i) {
      ++done;
      if (i % 30 == 7) throw Error(ErrorKind::kInput, std::to_string(i));
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace memfathom
