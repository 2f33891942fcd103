#include "core/parallel_for.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"

namespace memfathom {
namespace {

TEST(OnAllCoresTest, RunsEachIndexOnce) {
  std::vector<std::atomic<int>> done(1000);
  parallel_for(done.size(), [&](std::size_t i) { ++done[i]; });
  for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
  parallel_for(0, [](std::size_t) { FAIL(); });
}

TEST(OnAllCoresTest, ThrowsTheFirstFailureByIndexAfterFinishing) {
  std::atomic<int> done{0};
  try {
    parallel_for(100, [&](std::size_t i) {
      ++done;
      if (i % 30 == 7) throw Error(ErrorKind::kInput, std::to_string(i));
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
  EXPECT_EQ(done, 100);
}

// Requests an impossible stack size so that no thread can start, as in a container at its limit.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge{};
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(OnAllCoresTest, RunsInTheCallerIfNoThreadCanBeStarted) {
  const NoNewThreads limit;
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  std::vector<int> done(100);
  parallel_for(done.size(), [&](std::size_t i) { ++done[i]; });
  EXPECT_EQ(done, std::vector<int>(100, 1));
}

}  // namespace
}  // namespace memfathom
