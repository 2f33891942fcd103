#include "kernels/workspaces/cached_workspace_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/error.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

ConvolutionQuery query_of(std::int64_t batch) {
  ConvolutionQuery query;
  query.input = {batch, 64, 32, 32};
  query.weight = {128, 64, 3, 3};
  query.stride = query.padding = query.dilation = {1, 1};
  return query;
}

// Returns 100 bytes per sample, refuses batch 13, and counts its queries.
class CountingPlanner : public ConvolutionPlanner {
 public:
  struct Calls {
    std::atomic<int> asks{0};
    std::atomic<int> queries{0};
    bool broken = false;
  };
  explicit CountingPlanner(Calls& calls) : calls_(calls) {}

  std::vector<std::optional<Bytes>> ask(std::span<const ConvolutionQuery> queries) override {
    ++calls_.asks;
    calls_.queries += static_cast<int>(queries.size());
    if (calls_.broken) throw Error(ErrorKind::kEnvironment, "no cuDNN today");
    std::vector<std::optional<Bytes>> answers;
    for (const ConvolutionQuery& query : queries) {
      answers.push_back(query.input[0] == 13 ? std::nullopt
                                             : std::optional(Bytes{100 * query.input[0]}));
    }
    return answers;
  }

 private:
  Calls& calls_;
};

class SevenModel : public WorkspaceModel {
 public:
  WorkspaceSize convolution(const ConvolutionQuery&) const override {
    return {Bytes{7}, Source::kFitted};
  }
  WorkspaceSize fft(const FftQuery&) const override { return {Bytes{8}, Source::kDefault}; }
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }
};

CachedWorkspaceModel model(CountingPlanner::Calls& calls, const std::filesystem::path& stem) {
  return {std::make_unique<CountingPlanner>(calls), std::make_unique<WorkspaceStore>(stem),
          std::make_unique<SevenModel>()};
}

TEST(CachedWorkspaceModelTest, PlansAQueryOnceAndNeverInTheNextProcess) {
  const TemporaryDirectory directory;
  CountingPlanner::Calls calls;
  {
    const CachedWorkspaceModel first = model(calls, directory.path() / "cudnn");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(first.convolution(query_of(4)).bytes, Bytes{400});
  }
  EXPECT_EQ(calls.asks, 1);
  const CachedWorkspaceModel second = model(calls, directory.path() / "cudnn");
  EXPECT_EQ(second.convolution(query_of(4)).bytes, Bytes{400});
  EXPECT_EQ(second.convolution(query_of(4)).source, Source::kExact);
  EXPECT_EQ(calls.asks, 1);
}

TEST(CachedWorkspaceModelTest, PlansUnknownQueriesOfABatchTogetherAndOnce) {
  CountingPlanner::Calls calls;
  const CachedWorkspaceModel cached = model(calls, {});
  cached.convolution(query_of(1));
  const std::vector<ConvolutionQuery> queries{query_of(2), query_of(1), query_of(3), query_of(2)};
  const std::vector<WorkspaceSize> answers = cached.convolution_batch(queries);
  EXPECT_EQ(calls.asks, 2);
  EXPECT_EQ(calls.queries, 3);
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].bytes, Bytes{200});
  EXPECT_EQ(answers[1].bytes, Bytes{100});
  EXPECT_EQ(answers[2].bytes, Bytes{300});
  EXPECT_EQ(answers[3].bytes, Bytes{200});
}

TEST(CachedWorkspaceModelTest, StoresARefusalAndAnswersFromTheFallback) {
  const TemporaryDirectory directory;
  CountingPlanner::Calls calls;
  for (int process = 0; process < 2; ++process) {
    const CachedWorkspaceModel cached = model(calls, directory.path() / "cudnn");
    const WorkspaceSize answer = cached.convolution(query_of(13));
    EXPECT_EQ(answer.bytes, Bytes{7});
    EXPECT_EQ(answer.source, Source::kFitted);
    EXPECT_EQ(cached.planner_failure(), "");
  }
  EXPECT_EQ(calls.asks, 1);
}

TEST(CachedWorkspaceModelTest, QueriesABrokenPlannerOnceAndStoresNothing) {
  const TemporaryDirectory directory;
  CountingPlanner::Calls calls;
  calls.broken = true;
  {
    const CachedWorkspaceModel cached = model(calls, directory.path() / "cudnn");
    EXPECT_EQ(cached.convolution(query_of(1)).source, Source::kFitted);
    EXPECT_EQ(cached.convolution(query_of(2)).source, Source::kFitted);
    EXPECT_EQ(cached.planner_failure(), "no cuDNN today");
    EXPECT_EQ(calls.asks, 1);
  }
  calls.broken = false;
  EXPECT_EQ(model(calls, directory.path() / "cudnn").convolution(query_of(1)).bytes, Bytes{100});
}

TEST(CachedWorkspaceModelTest, NativePytorchKernelsNeedNoWorkspaceAndNoQuery) {
  CountingPlanner::Calls calls;
  const CachedWorkspaceModel cached = model(calls, {});
  ConvolutionQuery depthwise = query_of(4);
  depthwise.weight = {64, 1, 3, 3};
  depthwise.groups = 64;
  EXPECT_EQ(cached.convolution(depthwise).bytes, Bytes{});
  EXPECT_EQ(cached.convolution(depthwise).source, Source::kExact);
  EXPECT_EQ(calls.asks, 0);
}

TEST(CachedWorkspaceModelTest, PlansOncePerQueryWhenThreadsAskConcurrently) {
  CountingPlanner::Calls calls;
  const CachedWorkspaceModel cached = model(calls, {});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::int64_t batch = 20; batch < 220; ++batch) {
        if (cached.convolution(query_of(batch)).bytes != Bytes{100 * batch}) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(calls.queries, 200);
}

TEST(CachedWorkspaceModelTest, ForwardsTransformsToTheFallback) {
  CountingPlanner::Calls calls;
  EXPECT_EQ(model(calls, {}).fft({}).bytes, Bytes{8});
}

TEST(ConvolutionQueryHashTest, DiffersIfAnyFieldDiffers) {
  const ConvolutionQueryHash hash;
  const ConvolutionQuery base = query_of(4);
  ConvolutionQuery other = base;
  other.channels_last = true;
  EXPECT_NE(hash(base), hash(other));
  other = base;
  other.kind = ConvolutionKind::kDataGradient;
  EXPECT_NE(hash(base), hash(other));
  other = base;
  other.dtype = DType::kBf16;
  EXPECT_NE(hash(base), hash(other));
  other = base;
  other.padding = {1, 0};
  EXPECT_NE(hash(base), hash(other));
}

}  // namespace
}  // namespace memfathom
