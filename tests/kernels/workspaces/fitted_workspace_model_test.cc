#include "kernels/workspaces/fitted_workspace_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/fit/design.h"

namespace memfathom {
namespace {

ConvolutionQuery example(ConvolutionKind kind) {
  ConvolutionQuery query;
  query.kind = kind;
  query.input = {8, 64, 128, 128};
  query.weight = {128, 64, 3, 3};
  query.stride = query.padding = query.dilation = {1, 1};
  return query;
}

TEST(ConvolutionSizesTest, PadsChannelsToSixteenBytesAndSumsWeightGradientsInFp32) {
  ConvolutionQuery query = example(ConvolutionKind::kWeightGradient);
  query.dtype = DType::kFp16;
  query.input = {2, 3, 10, 10};
  query.weight = {21, 3, 3, 3};
  const ConvolutionSizes sizes = measure(query)->sizes;
  EXPECT_EQ(sizes.input, 2 * 8 * 100 * 2);
  EXPECT_EQ(sizes.output, 2 * 24 * 100 * 2);
  EXPECT_EQ(sizes.weight, 24 * 8 * 9 * 4);
  EXPECT_EQ(bytes_of({2, 1, 4}, sizes), sizes.input + sizes.output / 2 + 2 * sizes.weight);
}

TEST(ConvolutionSizesTest, UsesCudnnsViewOfATransposedConvolution) {
  ConvolutionQuery query = example(ConvolutionKind::kForward);
  query.input = {2, 32, 16, 16};
  query.weight = {32, 8, 2, 2};
  query.stride = {2, 2};
  query.padding = {0, 0};
  query.transposed = true;
  const ConvolutionSizes sizes = measure(query)->sizes;
  EXPECT_EQ(sizes.input, 2 * 8 * 32 * 32 * 4);  // cuDNN's input is the larger map
  EXPECT_EQ(sizes.output, 2 * 32 * 16 * 16 * 4);
}

TEST(ConvolutionSizesTest, ReturnsNoSizesForInvalidShapes) {
  ConvolutionQuery query = example(ConvolutionKind::kForward);
  query.stride = {0, 1};
  EXPECT_FALSE(measure(query).has_value());
  query = example(ConvolutionKind::kForward);
  query.input = {std::int64_t{1} << 40, std::int64_t{1} << 40, 128, 128};
  query.weight = {128, std::int64_t{1} << 40, 3, 3};
  EXPECT_FALSE(measure(query).has_value());
  EXPECT_FALSE(measure({}).has_value());
}

TEST(FittedTableTest, EveryTreeIsWhole) {
  for (const FittedTable* table :
       {&fitted_table(kOldestFittedCudnn), &fitted_table(kCurrentFittedCudnn)}) {
    for (std::size_t i = 0; i < table->trees.size(); ++i) {
      const std::size_t first = static_cast<std::size_t>(table->trees[i].first_node);
      const std::size_t end = i + 1 < table->trees.size()
                                  ? static_cast<std::size_t>(table->trees[i + 1].first_node)
                                  : table->nodes.size();
      for (std::size_t at = first; at < end; ++at) {
        const FittedNode& node = table->nodes[at];
        ASSERT_LT(node.feature, kConvolutionFeatureCount);
        if (node.feature < 0) {
          ASSERT_LT(static_cast<std::size_t>(node.right), kWorkspaceForms.size());
        } else {
          ASSERT_GT(first + static_cast<std::size_t>(node.right), at + 1);
          ASSERT_LT(first + static_cast<std::size_t>(node.right), end);
        }
      }
    }
    EXPECT_GT(table->provenance.training_queries, 100'000);
  }
}

TEST(FittedTableTest, ATableIsWrittenAsItWasRead) {
  for (const EmbeddedFile& file : fitted_table_files()) {
    const FittedTable table = parse_fitted_table(file.text, file.name);
    EXPECT_EQ(to_text(table), file.text) << file.name;
    EXPECT_EQ(parse_fitted_table(to_text(table), file.name), table);
  }
}

TEST(FittedTableTest, EveryEmbeddedFileIsFoundByTheVersionInIt) {
  for (const EmbeddedFile& file : fitted_table_files()) {
    const FittedTable table = parse_fitted_table(file.text, file.name);
    const std::string& version = table.provenance.cudnn_version;
    const std::string short_version = version.substr(0, version.rfind('.'));
    ASSERT_TRUE(has_fitted_table(short_version)) << version;
    EXPECT_EQ(fitted_table(short_version), table);
    EXPECT_EQ(&fitted_table(short_version), &fitted_table(short_version)) << "parsed once";
  }
  EXPECT_FALSE(has_fitted_table("7.6"));
  EXPECT_THROW(fitted_table("7.6"), Error);
  EXPECT_THROW(FittedWorkspaceModel("sm_80", "7.6"), Error);
}

TEST(FittedTableTest, ABrokenTableIsRefusedWithItsLine) {
  const std::string head = "cudnn 9.99.0\nqueries 10 2\n";
  const std::string tree = "tree 80 forward 32 nchw 0.1 0.2 0.3\n";
  const std::string two_trees = fmt::format("{0}{1}{1}", head, tree);
  EXPECT_EQ(parse_fitted_table(head + tree + "  3:0.5:2 0 57\n", "x").nodes.size(), 3U);
  struct Case {
    std::string text;
    const char* says;
  };
  for (const Case& c : {
           Case{"", "no trees"},
           Case{head, "no trees"},
           Case{head + "  0\n", "before the first tree"},
           Case{head + tree, "has no nodes"},
           Case{two_trees + "  0\n", "x:4: a tree has no nodes"},
           Case{head + tree + "  3:0.5:9 0 57\n", "has no target"},
           Case{head + tree + "  3:0.5:1 0 57\n", "has no target"},
           Case{head + tree + "  16:0.5:2 0 57\n", "has no target"},
           Case{head + tree + "  126\n", "has no target"},
           Case{head + tree + "  -1\n", "has no target"},
           Case{head + tree + "  3:0.5 0 57\n", "x:4: \"\" is not a number"},
           Case{head + tree + "  3:half:2 0 57\n", "\"half\" is not a number"},
           Case{head + "tree 80 sideways 32 nchw 0 0 0\n  0\n", "is not a convolution direction"},
           Case{head + "tree 80 forward 8 nchw 0 0 0\n  0\n", "is neither 32 nor 16"},
           Case{head + "tree 80 forward 32 nchw 0 0\n  0\n", "is not a number"},
           Case{tree + "  0\n", "no version of cuDNN"},
       }) {
    try {
      parse_fitted_table(c.text, "x");
      ADD_FAILURE() << "accepted: " << c.text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(c.says), std::string::npos) << error.what();
    }
  }
}

TEST(FittedTableTest, EveryArchitectureHasTwelveTreesTodayAndTheA100BeforeThat) {
  std::set<int> architectures;
  for (const GpuDescription& gpu : known_gpus()) architectures.insert(gpu.compute);
  EXPECT_EQ(fitted_table(kCurrentFittedCudnn).trees.size(), 12 * architectures.size());
  EXPECT_EQ(fitted_table(kCurrentFittedCudnn).provenance.cudnn_version, "9.19.0");
  EXPECT_EQ(fitted_table(kOldestFittedCudnn).trees.size(), 12U);
  EXPECT_EQ(fitted_table(kOldestFittedCudnn).trees[0].compute, 80);
  EXPECT_EQ(fitted_table(kOldestFittedCudnn).provenance.cudnn_version, "9.8.0");
}

TEST(FittedTableTest, OnHeldOutQueriesTheMedianErrorIsAFewPercentOfTheTensorsAtMost) {
  for (const FittedTable* table :
       {&fitted_table(kOldestFittedCudnn), &fitted_table(kCurrentFittedCudnn)}) {
    for (const FittedTree& tree : table->trees) {
      EXPECT_LT(tree.median_error, tree.kind == ConvolutionKind::kWeightGradient ? 6.0F : 1.0F)
          << tree.compute;
      EXPECT_LT(tree.mean_error, 45.0F) << tree.compute;
    }
  }
}

TEST(FittedWorkspaceModelTest, PredictsTheCopiesOfTheA100Example) {
  const FittedWorkspaceModel fitted("sm_80");
  const std::int64_t input = std::int64_t{8} * 64 * 128 * 128 * 4;
  const std::int64_t weight = std::int64_t{128} * 64 * 9 * 4;
  EXPECT_EQ(fitted.convolution(example(ConvolutionKind::kForward)).bytes, Bytes{input + weight});
  EXPECT_EQ(fitted.convolution(example(ConvolutionKind::kDataGradient)).bytes,
            Bytes{3 * input + weight});
  EXPECT_EQ(fitted.convolution(example(ConvolutionKind::kForward)).source, Source::kFitted);
}

TEST(FittedWorkspaceModelTest, AnswersStayBetweenZeroAndAFewTimesTheTensors) {
  const FittedWorkspaceModel fitted("sm_90");
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    const ConvolutionQuery query =
        draw_convolution(random, {static_cast<ConvolutionKind>(i % 3), DType::kBf16, i % 2 == 0});
    const ConvolutionSizes sizes = measure(query)->sizes;
    const Bytes bytes = fitted.convolution(query).bytes;
    EXPECT_GE(bytes, Bytes{});
    EXPECT_LE(bytes.count(), 2 * (sizes.input + sizes.output) + 128 * sizes.weight);
  }
}

TEST(FittedWorkspaceModelTest, AnArchitectureThatWasNotFittedIsAnsweredByTheNextOlder) {
  EXPECT_EQ(
      tree_for(fitted_table(kCurrentFittedCudnn), example(ConvolutionKind::kForward), 87)->compute,
      86);
  EXPECT_EQ(
      tree_for(fitted_table(kCurrentFittedCudnn), example(ConvolutionKind::kForward), 70)->compute,
      75);
  EXPECT_EQ(
      tree_for(fitted_table(kCurrentFittedCudnn), example(ConvolutionKind::kForward), 121)->compute,
      120);
}

TEST(FittedWorkspaceModelTest, TransformWorkAreaIsItsSpectrumByDefault) {
  const FittedWorkspaceModel fitted("sm_80");
  FftQuery query;
  query.extents = {64, 64};
  query.batch = 10;
  EXPECT_EQ(fitted.fft(query).bytes, Bytes{std::int64_t{10} * 64 * 33 * 8});
  query.kind = FftKind::kComplexToComplex;
  EXPECT_EQ(fitted.fft(query).bytes, Bytes{std::int64_t{10} * 64 * 64 * 8});
  EXPECT_EQ(fitted.fft(query).source, Source::kDefault);
  query.extents = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_THROW(fitted.fft(query), Error);
}

}  // namespace
}  // namespace memfathom
