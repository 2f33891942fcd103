// What asking the fitted table for a convolution's workspace costs.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/workspaces/fitted_workspace_model.h"

namespace memfathom {
namespace {

// The 3x3 convolutions of a ResNet, in every direction and three types.
std::vector<ConvolutionQuery> queries() {
  std::vector<ConvolutionQuery> made;
  for (const std::int64_t width : {64, 128, 256, 512}) {
    for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                       ConvolutionKind::kWeightGradient}) {
      for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16}) {
        ConvolutionQuery query;
        query.kind = kind;
        query.dtype = dtype;
        query.input = {32, width, 3584 / width, 3584 / width};
        query.weight = {width, width, 3, 3};
        query.stride = query.padding = query.dilation = {1, 1};
        made.push_back(query);
      }
    }
  }
  return made;
}

void fitted_table(benchmark::State& state) {
  const FittedWorkspaceModel model("sm_80");
  const std::vector<ConvolutionQuery> asked = queries();
  for (auto _ : state) {
    for (const ConvolutionQuery& query : asked)
      benchmark::DoNotOptimize(model.convolution(query).bytes);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(asked.size()));
}

BENCHMARK(fitted_table);

}  // namespace
}  // namespace memfathom
