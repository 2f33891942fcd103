#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/cudnn_planner.h"
#include "kernels/workspaces/fit/design.h"
#include "kernels/workspaces/fitted_workspace_model.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;

ConvolutionQuery example() {
  ConvolutionQuery query;
  query.input = {8, 64, 128, 128};
  query.weight = {128, 64, 3, 3};
  query.stride = query.padding = query.dilation = {1, 1};
  return query;
}

TEST(CudnnPlannerTest, AnswersInOrderAndWithTheLargestInBenchmarkMode) {
  CudnnPlanner planner({.gpu = "sm_80", .program = {}, .library_directory = {}});
  std::vector<ConvolutionQuery> queries{example(), example(), example()};
  queries[1].kind = ConvolutionKind::kDataGradient;
  queries[2].benchmark = true;
  const std::vector<std::optional<Bytes>> answers = planner.ask(queries);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0], Bytes{33849360});
  EXPECT_EQ(answers[1], Bytes{100958224});
  EXPECT_GT(answers[2], answers[0]);
}

TEST(CudnnPlannerTest, TwoProcessesAnswerALargeBatchLikeOne) {
  std::mt19937_64 random(7);
  std::vector<ConvolutionQuery> queries;
  for (int i = 0; i < 2100; ++i)
    queries.push_back(draw_convolution(random, {ConvolutionKind::kForward, DType::kFp32, false}));
  CudnnPlanner one({.gpu = "sm_90", .program = {}, .library_directory = {}, .processes = 1});
  CudnnPlanner two({.gpu = "sm_90", .program = {}, .library_directory = {}, .processes = 2});
  EXPECT_EQ(one.ask(queries), two.ask(queries));
}

TEST(CudnnPlannerTest, ReportsARefusedGraphWithAReason) {
  CudnnPlanner planner({.gpu = "sm_75", .program = {}, .library_directory = {}});
  ConvolutionQuery query = example();
  query.dtype = DType::kBf16;
  EXPECT_EQ(planner.ask(std::span(&query, 1)).front(), std::nullopt);
  const std::vector<std::string> lines{to_string(query), "conv nonsense", to_string(example())};
  const std::vector<std::string> answers = planner.query_lines(lines);
  EXPECT_THAT(answers[0], HasSubstr("refused cuDNN has no engine"));
  EXPECT_THAT(answers[1], HasSubstr("refused \"conv nonsense\" is not a convolution query"));
  EXPECT_THAT(answers[2], ::testing::Not(HasSubstr("refused")));
}

TEST(CudnnPlannerTest, PlansAttentionOnlyWithLibcudaInTheChild) {
  const std::vector<std::string> lines{"attention forward fp16 2 8 8 512 512 64",
                                       "attention forward"};
  CudnnPlanner without({.gpu = "sm_90", .program = {}, .library_directory = {}, .libcuda = {}});
  EXPECT_THAT(without.query_lines(lines)[0], HasSubstr("refused cuDNN has no engine"));
  CudnnPlanner with(
      {.gpu = "sm_90", .program = {}, .library_directory = {}, .libcuda = MEMFATHOM_LIBCUDA_STUB});
  const std::vector<std::string> answers = with.query_lines(lines);
  EXPECT_LT(std::stoll(answers[0]), 1 << 20);
  EXPECT_THAT(answers[1], HasSubstr("is not an attention query"));
}

CudnnPlanner attention_planner(const char* gpu) {
  return CudnnPlanner(
      {.gpu = gpu, .program = {}, .library_directory = {}, .libcuda = MEMFATHOM_LIBCUDA_STUB});
}

// The graphs that CudaDevice runs, put to the real library.
TEST(CudnnPlannerTest, CudnnAcceptsOurAttentionGraphsFromAmpereToBlackwell) {
  const std::vector<std::string> lines{"attention forward bf16 2 8 8 512 512 64",
                                       "attention forward fp16 2 8 2 500 500 128 causal",
                                       "attention backward fp16 2 8 8 512 512 128 causal",
                                       "attention backward bf16 2 8 2 500 77 40"};
  for (const char* gpu : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    for (const std::string& answer : attention_planner(gpu).query_lines(lines))
      EXPECT_THAT(answer, ::testing::Not(HasSubstr("refused"))) << gpu;
  }
  for (const std::string& answer : attention_planner("sm_75").query_lines(lines))
    EXPECT_THAT(answer, HasSubstr("refused cuDNN has no engine"));
}

// The memory model of flash attention also applies where PyTorch prefers cuDNN: on Hopper both keep
// the query gradient in fp32 and a sum per row, and for grouped heads dk and dv of every query
// head.
TEST(CudnnPlannerTest, BackwardWorkspaceOnHopperEqualsFlashAttention) {
  const std::vector<std::string> lines{"attention backward bf16 2 8 8 512 512 64 causal",
                                       "attention backward bf16 2 8 2 512 512 64 causal"};
  const std::vector<std::string> answers = attention_planner("sm_90").query_lines(lines);
  const std::int64_t rows = std::int64_t{2} * 8 * 512;
  const std::int64_t flash = rows * 64 * 4 + rows * 4;
  EXPECT_NEAR(std::stod(answers[0]), static_cast<double>(flash), 512);
  EXPECT_NEAR(std::stod(answers[1]), static_cast<double>(flash + 2 * rows * 64 * 2), 512);
}

TEST(CudnnPlannerTest, RefusesAnUnknownGpuAndListsTheKnownOnes) {
  try {
    CudnnPlanner planner({.gpu = "sm_35", .program = {}, .library_directory = {}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("no GPU \"sm_35\" is described"));
    EXPECT_THAT(error.what(), HasSubstr("sm_80 (a100)"));
  }
}

TEST(CudnnPlannerTest, ReportsAMissingOrInvalidPlannerProgram) {
  for (const auto& [program, words] :
       {std::pair{"/nonexistent/planner", "could not be started: No such file"},
        std::pair{"/bin/true", "ended before it answered"},
        std::pair{"/bin/pwd", "greeted with"}}) {
    CudnnPlanner planner({.gpu = "sm_80", .program = program, .library_directory = {}});
    const ConvolutionQuery query = example();
    try {
      planner.ask(std::span(&query, 1));
      FAIL() << program;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  }
}

TEST(CudnnPlannerTest, ReportsTheLoadersErrorForABadLibrary) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/null", directory.path() / "libcudnn.so.9");
  CudnnPlanner planner({.gpu = "sm_80", .program = {}, .library_directory = directory.path()});
  const ConvolutionQuery query = example();
  try {
    planner.ask(std::span(&query, 1));
    FAIL() << "answered";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("libcudnn.so.9"));
  }
}

TEST(OpenWorkspaceModelTest, SecondModelAnswersFromTheCacheWithoutAPlanner) {
  const TemporaryDirectory cache;
  const OpenedWorkspaceModel first = open_workspace_model(
      {.gpu = "a100", .cache_directory = cache.path(), .library_directory = {}});
  EXPECT_FALSE(first.cudnn_version.empty());
  EXPECT_EQ(first.note, "");
  EXPECT_EQ(first.model->convolution(example()).bytes, Bytes{33849360});
  EXPECT_EQ(first.model->convolution(example()).source, Source::kExact);

  setenv("MEMFATHOM_CUDNN_PLANNER", "/nonexistent/planner", 1);
  const OpenedWorkspaceModel second = open_workspace_model(
      {.gpu = "a100", .cache_directory = cache.path(), .library_directory = {}});
  const WorkspaceSize cached = second.model->convolution(example());
  ConvolutionQuery other = example();
  other.input = {8, 64, 96, 96};
  const WorkspaceSize unknown = second.model->convolution(other);
  unsetenv("MEMFATHOM_CUDNN_PLANNER");
  EXPECT_EQ(cached.bytes, Bytes{33849360});
  EXPECT_EQ(cached.source, Source::kExact);
  EXPECT_EQ(unknown.source, Source::kFitted);
}

TEST(OpenWorkspaceModelTest, UsesTheFittedModelWithANoteIfCudnnIsMissing) {
  setenv("MEMFATHOM_CUDNN_PLANNER", "/nonexistent/planner", 1);
  const OpenedWorkspaceModel opened =
      open_workspace_model({.gpu = "sm_80", .cache_directory = {}, .library_directory = {}});
  unsetenv("MEMFATHOM_CUDNN_PLANNER");
  EXPECT_EQ(opened.cudnn_version, "");
  EXPECT_THAT(
      opened.note,
      HasSubstr(
          "come from the fitted model: cuDNN's planner /nonexistent/planner could not be started"));
  EXPECT_EQ(opened.model->convolution(example()).source, Source::kFitted);
}

// Held-out queries: a seed the fit did not use.
TEST(FittedWorkspaceModelTest, MedianErrorIsOnePercentOfTheTensorsAndSixForWeightGradients) {
  const FittedWorkspaceModel fitted("sm_80");
  CudnnPlanner planner({.gpu = "sm_80", .program = {}, .library_directory = {}});
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    for (const auto& [kind, median_bound, mean_bound] :
         {std::tuple{ConvolutionKind::kForward, 0.01, 0.20},
          std::tuple{ConvolutionKind::kDataGradient, 0.01, 0.22},
          std::tuple{ConvolutionKind::kWeightGradient, 0.06, 0.35}}) {
      std::mt19937_64 random(99);
      std::vector<ConvolutionQuery> queries;
      for (int i = 0; i < 1000; ++i)
        queries.push_back(draw_convolution(random, {kind, dtype, false}));
      const std::vector<std::optional<Bytes>> truth = planner.ask(queries);
      std::vector<double> errors;
      double sum = 0;
      for (std::size_t i = 0; i < queries.size(); ++i) {
        if (!truth[i]) continue;
        const ConvolutionSizes sizes = measure(queries[i])->sizes;
        const double whole =
            std::max(static_cast<double>(sizes.input + sizes.output + sizes.weight), 0x1p20);
        errors.push_back(std::abs(static_cast<double>(
                             (fitted.convolution(queries[i]).bytes - *truth[i]).count())) /
                         whole);
        sum += errors.back();
      }
      ASSERT_GT(errors.size(), 900U);
      std::sort(errors.begin(), errors.end());
      EXPECT_LT(errors[errors.size() / 2], median_bound)
          << to_string(kind) << " " << to_string(dtype);
      EXPECT_LT(sum / static_cast<double>(errors.size()), mean_bound)
          << to_string(kind) << " " << to_string(dtype);
    }
  }
}

}  // namespace
}  // namespace memfathom
