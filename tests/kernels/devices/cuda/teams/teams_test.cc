// Our kernels in real teams of threads: 32 and 256 of them share a row, as on a GPU. What compute-
// sanitizer's racecheck and synccheck look for on a device, ThreadSanitizer and the barriers of
// HostBlock look for here.
#include "tests/kernels/devices/cuda/teams/host_block.h"
// The device code comes after the names that it uses.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/devices/cuda/teams.cuh"
#include "kernels/devices/cuda/work/attention.h"
#include "kernels/devices/cuda/work/elementwise.h"
#include "kernels/devices/cuda/work/gemm.h"
#include "kernels/devices/cuda/work/norm.h"
#include "kernels/devices/cuda/work/planes.h"
#include "kernels/devices/cuda/work/rows.h"
#include "kernels/devices/reference/reference.h"
#include "kernels/devices/selftest/harness.h"
#include "kernels/memory/allocator/mmap_segments.h"

namespace {

std::atomic<int> races{0};

}  // namespace

#ifdef MEMFATHOM_TEAMS_TSAN
// ThreadSanitizer calls these.
extern "C" void __tsan_on_report(void*) { ++races; }
extern "C" const char* __tsan_default_options() {
  return "exitcode=0:report_thread_leaks=0";  // the tests count reports and judge
}
#endif

namespace memfathom::cuda {
namespace {

static_assert(kBlock == teams::HostBlock::kThreads && kWarp == teams::HostBlock::kWarp);

// Two blocks, so that both kinds of striding are taken.
class TeamExecutor {
 public:
  static constexpr unsigned kBlocks = 2;

  template <typename Work>
  void each(std::int64_t n, const Work& work) {
    broken_ += block_.run(kBlocks, [&] { each_kernel(work, n); });
  }
  template <typename Work>
  void rows(std::int64_t n, const Work& work) {
    broken_ += block_.run(kBlocks, [&] { rows_kernel(work, n); });
  }
  template <typename Work>
  void narrow_rows(std::int64_t n, const Work& work) {
    broken_ += block_.run(1, [&] { narrow_rows_kernel(work, n); });
  }
  int broken() const { return broken_; }

 private:
  teams::HostBlock block_;
  int broken_ = 0;
};

// One thread a row: what the doubled device does.
struct SingleExecutor {
  template <typename Work>
  void each(std::int64_t n, const Work& work) {
    for (std::int64_t i = 0; i < n; ++i) work(i);
  }
  template <typename Work>
  void rows(std::int64_t n, const Work& work) {
    for (std::int64_t r = 0; r < n; ++r) work(SingleTeam{}, r);
  }
  template <typename Work>
  void narrow_rows(std::int64_t n, const Work& work) {
    rows(n, work);
  }
};

// Our kernels on host memory; what NVIDIA's libraries compute is left to the reference.
template <typename Executor>
class KernelDevice final : public Device {
 public:
  explicit KernelDevice(Executor& executor) : executor_(executor) {}
  std::string name() const override { return "teams"; }
  Environment environment() const override { return {}; }
  SegmentSource& memory() override { return memory_; }
  bool computes() const override { return true; }
  void synchronize() override {}
  const WorkspaceModel& workspaces() const override { return workspaces_; }

  void run(const ElementwiseCall& call) override { submit(executor_, call); }
  void run(const ReduceCall& call) override { submit(executor_, call); }
  void run(const SoftmaxCall& call) override { submit(executor_, call); }
  void run(const NormCall& call) override { submit(executor_, call); }
  void run(const NllCall& call) override { submit(executor_, call); }
  void run(const DropoutCall& call) override { submit(executor_, call); }
  void run(const GemmCall& call) override { submit(executor_, call); }
  void run(const ConvolutionCall& call) override { run_reference(call); }
  void run(const PoolCall& call) override { submit(executor_, call); }
  void run(const UpsampleCall& call) override { submit(executor_, call); }
  void run(const FftCall& call) override { run_reference(call); }
  void run(const AttentionCall& call) override { submit(executor_, call); }
  void run(const EmbeddingCall& call) override { submit(executor_, call); }
  void run(const OptimizerCall& call) override { submit(executor_, call); }

  void set_gemm_workspace(Operand) override {}
  void copy_from_host(void* device, const void* host, Bytes bytes) override {
    std::memcpy(device, host, static_cast<std::size_t>(bytes.count()));
  }
  void copy_to_host(void* host, const void* device, Bytes bytes) override {
    std::memcpy(host, device, static_cast<std::size_t>(bytes.count()));
  }

 private:
  Executor& executor_;
  MmapSegments memory_;
  NoWorkspaces workspaces_;
};

template <typename Executor>
SelftestReport report_of(Executor& executor) {
  KernelDevice<Executor> device(executor);
  selftest::Harness harness(device);
  selftest::team_cases(harness);
  return harness.take();
}

// A row's sum by a team, in whole numbers: exact in any order.
template <typename T>
T sum_of(TeamExecutor& executor, bool narrow, std::int64_t n) {
  std::vector<T> row(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) row[static_cast<std::size_t>(i)] = static_cast<T>(i % 17);
  T result = -1;
  const auto work = [&](const auto& team, std::int64_t) {
    T sum = 0;
    for (std::int64_t i = team.lane(); i < n; i += team.kSize)
      sum += row[static_cast<std::size_t>(i)];
    sum = team.sum(sum);
    if (team.lane() == 0) result = sum;
  };
  narrow ? executor.narrow_rows(1, work) : executor.rows(1, work);
  return result;
}

class TeamsTest : public testing::Test {
 protected:
  TeamExecutor executor_;
  int races_before_ = races;
};

TEST_F(TeamsTest, EveryKernelComputesInATeamWhatOneThreadComputes) {
  SingleExecutor single;
  const SelftestReport by_one = report_of(single);
  const SelftestReport by_team = report_of(executor_);
  ASSERT_EQ(by_team.cases.size(), by_one.cases.size());
  EXPECT_GT(by_team.cases.size(), 100U);
  for (std::size_t i = 0; i < by_team.cases.size(); ++i) {
    const SelftestCase& team = by_team.cases[i];
    EXPECT_TRUE(by_one.cases[i].passed()) << by_one.cases[i].name << by_one.cases[i].failure;
    EXPECT_TRUE(team.passed()) << team.name << ": " << team.difference << team.failure;
  }
  EXPECT_EQ(executor_.broken(), 0) << "every thread reaches every barrier";
  EXPECT_EQ(races, races_before_);
}

TEST_F(TeamsTest, SumsAreExactWhateverTheLength) {
  for (const std::int64_t n : {1, 31, 32, 33, 255, 256, 257, 1000}) {
    std::int64_t wanted = 0;
    for (std::int64_t i = 0; i < n; ++i) wanted += i % 17;
    for (const bool narrow : {false, true}) {
      EXPECT_EQ(sum_of<float>(executor_, narrow, n), static_cast<float>(wanted)) << n << narrow;
      EXPECT_EQ(sum_of<double>(executor_, narrow, n), static_cast<double>(wanted)) << n << narrow;
    }
  }
  EXPECT_EQ(executor_.broken(), 0);
  EXPECT_EQ(races, races_before_);
}

// Planted: what these tests are for.
TEST_F(TeamsTest, ABarrierThatSomeThreadsSkipIsFound) {
  executor_.rows(1, [](const auto& team, std::int64_t) {
    if (team.lane() < 200) __syncthreads();
  });
  EXPECT_GT(executor_.broken(), 0);
}

TEST_F(TeamsTest, AShuffleThatSomeLanesSkipIsFound) {
  executor_.narrow_rows(8, [](const auto& team, std::int64_t) {
    if (team.lane() != 3) team.sum(1.0F);
  });
  EXPECT_GT(executor_.broken(), 0);
}

#ifdef MEMFATHOM_TEAMS_TSAN
// ThreadSanitizer drops a race whose earlier access it can no longer attribute, so one run may miss
// it.
constexpr int kTries = 50;

TEST_F(TeamsTest, SharedMemoryWithoutABarrierIsARace) {
  for (int i = 0; i < kTries && races == races_before_; ++i) {
    executor_.rows(1, [](const auto& team, std::int64_t) {
      __shared__ double shared[kWarps];
      if (team.lane() % kWarp == 0) shared[team.lane() / kWarp] = team.lane();
      volatile double first = shared[0];  // before everybody has written
      (void)first;
    });
  }
  EXPECT_GT(races, races_before_);
}

TEST_F(TeamsTest, TwoThreadsThatWriteOneElementAreARace) {
  std::vector<float> out(300);
  for (int i = 0; i < kTries && races == races_before_; ++i)
    executor_.each(600, [&](std::int64_t k) { out[static_cast<std::size_t>(k / 2)] = 1; });
  EXPECT_GT(races, races_before_);
}
#endif

}  // namespace
}  // namespace memfathom::cuda
