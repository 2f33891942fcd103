// Layers on three devices: the doubled CUDA device computes what the cpu computes, and all three
// allocate alike.
#include "kernels/devices/selftest/layers.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/fft.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/allocator/forwarding_allocator.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using selftest::layer_cases;
using selftest::LayerCase;

// The libraries' answers, remembered until their bytes are requested, so that workspaces can be
// told from tensors.
class NotingWorkspaces final : public WorkspaceModel {
 public:
  explicit NotingWorkspaces(const Device& device) : device_(device) {}
  WorkspaceSize convolution(const ConvolutionQuery& query) const override {
    return note(device_.workspaces().convolution(query));
  }
  WorkspaceSize fft(const FftQuery& query) const override {
    return note(device_.workspaces().fft(query));
  }
  WorkspaceSize attention(const AttentionQuery& query) const override {
    return note(device_.workspaces().attention(query));
  }
  bool take(Bytes size) const {
    if (answered_ != size || size == Bytes{}) return false;
    answered_ = Bytes{};
    return true;
  }

 private:
  WorkspaceSize note(WorkspaceSize answer) const {
    answered_ = answer.bytes;
    return answer;
  }
  const Device& device_;
  mutable Bytes answered_;
};

// Every request and release in order, workspaces of cuDNN and cuFFT aside: bytes, and their
// negative when freed.
class NotingAllocator final : public ForwardingAllocator {
 public:
  NotingAllocator(Allocator& inner, const NotingWorkspaces& workspaces)
      : ForwardingAllocator(inner), workspaces_(workspaces) {}

  Allocation allocate(Bytes size, int stream) override {
    const Allocation allocation = ForwardingAllocator::allocate(size, stream);
    if (allocation && !workspaces_.take(size)) {
      live_[allocation.block] = size.count();
      events.push_back(size.count());
    }
    return allocation;
  }
  void free(const Allocation& allocation) override {
    if (const auto found = live_.find(allocation.block); found != live_.end()) {
      events.push_back(-found->second);
      live_.erase(found);
    }
    ForwardingAllocator::free(allocation);
  }

  std::vector<std::int64_t> events;

 private:
  const NotingWorkspaces& workspaces_;
  std::map<std::uint32_t, std::int64_t> live_;
};

struct Outcome {
  std::vector<std::vector<float>>
      values;  // the output, the input's gradient, each parameter's gradient
  std::vector<std::int64_t> events;
};

Outcome run_layer(Device& device, const LayerCase& layer_case, Session* offload_session = nullptr) {
  Outcome outcome;
  CachingAllocator caching(device.memory());
  const NotingWorkspaces workspaces(device);
  NotingAllocator allocator(caching, workspaces);
  Session session(device, allocator, workspaces, FrameworkPolicy{});
  session.offload_session = offload_session;
  outcome.values =
      selftest::run_layer(session, layer_case, [&] { outcome.events = allocator.events; });
  return outcome;
}

// Where two sequences part, with what comes before; empty when they do not.
std::string parting(const std::vector<std::int64_t>& got, const std::vector<std::int64_t>& wanted) {
  const auto [a, b] = std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end());
  if (a == got.end() && b == wanted.end()) return "";
  const auto at = a - got.begin();
  std::string text = "event " + std::to_string(at) + ":";
  for (auto i = std::max<std::ptrdiff_t>(0, at - 8); i < at; ++i)
    text += " " + std::to_string(got[static_cast<std::size_t>(i)]);
  text += " | " + (a == got.end() ? "nothing" : std::to_string(*a)) + " instead of " +
          (b == wanted.end() ? "nothing" : std::to_string(*b));
  return text;
}

class CudaLayersTest : public DoubledTest {};

TEST_F(CudaLayersTest, EveryLayerAgreesWithTheCpuForwardAndBackward) {
  for (const LayerCase& layer_case : layer_cases()) {
    SCOPED_TRACE(layer_case.name);
    CpuDevice cpu;
    CudaDevice cuda(0);
    const Outcome wanted = run_layer(cpu, layer_case);
    const Outcome got = run_layer(cuda, layer_case);
    // Batch norms over few numbers magnify what oneDNN's convolutions round.
    const double tolerance = layer_case.dtype != DType::kFp32 ? layer_case.tolerance
                             : layer_case.tolerance > 1e-3    ? 1e-3
                                                              : 1e-5;
    EXPECT_LT(selftest::largest_difference(got.values, wanted.values), tolerance);
  }
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
  EXPECT_GT(doubles::calls_of("cudnnBackendExecute"), 0);
}

// cuBLAS conjugates only what it transposes; a real factor has nothing to conjugate.
TEST_F(CudaLayersTest, CublasMultipliesRealFactorsInAnyLayout) {
  CudaDevice device(0);
  CachingAllocator allocator(device.memory());
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  Tensor queries = session.zeros({2, 3, 4}, DType::kFp32);
  Tensor keys = session.zeros({2, 5, 4}, DType::kFp32);
  queries.set_requires_grad(true);
  keys.set_requires_grad(true);
  const Tensor scores = bmm(queries, transpose(keys, 1, 2));
  run_backward(sum_all(mul(scores, scores)));
  EXPECT_EQ(doubles::calls_of("cublasGemmStridedBatchedEx"), 3);
}

// On a GPU without fused engines: with them the workspace stands in for the temporaries of flash
// attention.
TEST_F(CudaLayersTest, LayersAllocateEquallyOnCpuCudaAndDry) {
  doubles::reset({.major = 7, .minor = 5});
  for (const LayerCase& layer_case : layer_cases()) {
    SCOPED_TRACE(layer_case.name);
    CpuDevice cpu;
    CudaDevice cuda(0);
    DryDevice dry;
    const Outcome wanted = run_layer(dry, layer_case);
    EXPECT_GT(wanted.events.size(), 10U);
    EXPECT_EQ(parting(run_layer(cpu, layer_case).events, wanted.events), "");
    EXPECT_EQ(parting(run_layer(cuda, layer_case).events, wanted.events), "");
  }
}

TEST_F(CudaLayersTest, FusedEnginesReplaceTheTemporariesOfFlashAttentionAndNothingElse) {
  const std::vector<LayerCase> cases = layer_cases();
  const auto sixteen_bit = std::find_if(cases.begin(), cases.end(),
                                        [](const LayerCase& c) { return c.dtype == DType::kBf16; });
  ASSERT_NE(sixteen_bit, cases.end());
  CudaDevice cuda(0);
  DryDevice dry;
  std::vector<std::int64_t> fused = run_layer(cuda, *sixteen_bit).events;
  std::vector<std::int64_t> wanted = run_layer(dry, *sixteen_bit).events;
  std::sort(fused.begin(), fused.end());
  std::sort(wanted.begin(), wanted.end());
  std::vector<std::int64_t> missing;
  std::set_difference(wanted.begin(), wanted.end(), fused.begin(), fused.end(),
                      std::back_inserter(missing));
  // A sum per row and the query gradient, rows in steps of 128 and features in steps of 32, fp32.
  const std::int64_t sums = std::int64_t{2} * 2 * 128 * 4;
  const std::int64_t gradient = std::int64_t{2} * 128 * 2 * 32 * 4;
  EXPECT_THAT(missing, testing::ElementsAre(-gradient, -sums, sums, gradient));
  EXPECT_EQ(fused.size() + missing.size(), wanted.size());
}

// Saved tensors offloaded to the host return unchanged.
TEST_F(CudaLayersTest, SavedTensorsOnTheHostGiveTheSameGradients) {
  for (const LayerCase& layer_case : layer_cases()) {
    SCOPED_TRACE(layer_case.name);
    CpuDevice cpu;
    CachingAllocator host_memory(cpu.memory());
    Session host(cpu, host_memory, cpu.workspaces(), FrameworkPolicy{});
    CudaDevice cuda(0);
    for (Device* device : {static_cast<Device*>(&cpu), static_cast<Device*>(&cuda)}) {
      const Outcome wanted = run_layer(*device, layer_case);
      const int copies = doubles::calls_of("cudaMemcpyAsync");
      EXPECT_EQ(run_layer(*device, layer_case, &host).values, wanted.values);
      EXPECT_EQ(doubles::calls_of("cudaMemcpyAsync") > copies, device == &cuda);
    }
    EXPECT_GT(host_memory.statistics().allocated_bytes.all.peak, 0);
    EXPECT_EQ(host_memory.statistics().allocated_bytes.all.current, 0);
  }
}

// Every segment request of a training step fails once. With anything cached the allocator releases
// it and tries again; with nothing to release that is out of memory, in PyTorch too. Either way the
// device stays usable.
TEST_F(CudaLayersTest, RecoversFromOneFailedSegmentRequestOrIsOutOfMemory) {
  const LayerCase layer_case = layer_cases().front();
  CudaDevice device(0);
  const int before = doubles::calls_of("cudaMalloc");
  const Outcome wanted = run_layer(device, layer_case);
  const int requests = doubles::calls_of("cudaMalloc") - before;
  ASSERT_GT(requests, 1);
  int recovered = 0;
  for (int nth = 1; nth <= requests; ++nth) {
    doubles::fail("cudaMalloc", nth, cudaErrorMemoryAllocation);
    try {
      EXPECT_EQ(run_layer(device, layer_case).values, wanted.values) << nth;
      ++recovered;
    } catch (const OutOfMemory&) {
      ADD_FAILURE() << "request " << nth << " was not tried again";
    }
    doubles::stop_failing();
    EXPECT_EQ(doubles::bytes_in_use(), 0U) << nth;
  }
  EXPECT_EQ(recovered, requests);
  EXPECT_EQ(run_layer(device, layer_case).values, wanted.values);
}

TEST_F(CudaLayersTest, PersistentlyFailedSegmentRequestIsOutOfMemoryAndTheNextStepSucceeds) {
  const LayerCase layer_case = layer_cases().front();
  CudaDevice device(0);
  const Outcome wanted = run_layer(device, layer_case);
  for (int good = 0; good < 2; ++good) {
    doubles::fail("cudaMalloc", good + 1, cudaErrorMemoryAllocation);
    doubles::fail("cudaMalloc", good + 2, cudaErrorMemoryAllocation);
    EXPECT_THROW(run_layer(device, layer_case), OutOfMemory) << good;
    doubles::stop_failing();
    EXPECT_EQ(doubles::bytes_in_use(), 0U);
  }
  EXPECT_EQ(run_layer(device, layer_case).values, wanted.values);
}

// As PyTorch: the engines are tried in half the workspace, and half of that, where memory is short.
TEST_F(CudaLayersTest, BenchmarkModeMakesDoWithASmallerWorkspaceWhereMemoryIsShort) {
  const auto convolve = [](Session& session) {
    session.cudnn_benchmark = true;
    const Tensor x = session.full({1, 1, 2, 2}, DType::kFp32, 3);
    const Tensor w = session.full({1, 1, 1, 1}, DType::kFp32, 2);
    const ConvolutionOptions plain{
        .stride = {1, 1}, .padding = {0, 0}, .dilation = {1, 1}, .output_padding = {}};
    const Tensor y = convolution(x, w, {}, plain);
    std::vector<float> values(4);
    session.device().copy_to_host(values.data(), y.operand().data, Bytes{16});
    return values;
  };
  CudaDevice device(0);
  CachingAllocator allocator(device.memory());
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  // The engines want 1 MiB, 4 MiB and nothing. The first segment holds the tensors; those for 4
  // and 2 MiB fail, also after the cache is released; 1 MiB comes from a small segment.
  for (const int nth : {2, 3, 4, 5}) doubles::fail("cudaMalloc", nth, cudaErrorMemoryAllocation);
  EXPECT_THAT(convolve(session), testing::Each(6.0F));
  EXPECT_EQ(allocator.statistics().num_ooms, 2);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

// cuBLASLt with a workspace of its own may come first in a session, too.
TEST_F(CudaLayersTest, ReplacesTheOldWorkspaceInASessionThatStartsWithABias) {
  CudaDevice device(0);
  run_layer(device, layer_cases().front());
  CachingAllocator allocator(device.memory());
  FrameworkPolicy policy;
  policy.cublaslt_workspace = Bytes{1 << 20};
  Session session(device, allocator, device.workspaces(), policy);
  Builder builder(session, {});
  const Linear layer = make_linear(builder, "linear", 4, 4);
  const Tensor x = session.zeros({2, 4}, DType::kFp32);
  for (const NamedTensor& parameter : builder.parameters())
    selftest::fill(device, parameter.tensor, 1);
  layer(x);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

// cuFFT reads real numbers in pairs: a view at an odd place is copied, as PyTorch does, on every
// device alike.
TEST_F(CudaLayersTest, CopiesAViewAtAnOddOffsetBeforeATransform) {
  const auto transform = [](Device& device, std::int64_t begin) {
    CachingAllocator allocator(device.memory());
    const NotingWorkspaces workspaces(device);
    NotingAllocator noting(allocator, workspaces);
    Session session(device, noting, workspaces, FrameworkPolicy{});
    const Tensor longer = session.full({40}, DType::kFp32, 1);
    const std::size_t before = noting.events.size();
    rfftn(slice(longer, 0, begin, begin + 32), 1);
    return std::vector<std::int64_t>(noting.events.begin() + static_cast<std::ptrdiff_t>(before),
                                     noting.events.end());
  };
  CpuDevice cpu;
  CudaDevice cuda(0);
  DryDevice dry;
  for (Device* device :
       {static_cast<Device*>(&cpu), static_cast<Device*>(&cuda), static_cast<Device*>(&dry)}) {
    EXPECT_THAT(transform(*device, 2), testing::ElementsAre(17 * 8, -17 * 8));
    EXPECT_THAT(transform(*device, 3), testing::ElementsAre(17 * 8, 32 * 4, -32 * 4, -17 * 8));
  }
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

// A workspace belongs to its session: a later one that takes none must not leave the old address
// with the library.
TEST_F(CudaLayersTest, DropsTheWorkspaceWithItsSession) {
  CudaDevice device(0);
  run_layer(device, layer_cases().front());
  CachingAllocator allocator(device.memory());
  FrameworkPolicy policy;
  policy.count_workspaces = false;
  Session session(device, allocator, device.workspaces(), policy);
  Builder builder(session, {});
  const Linear layer = make_linear(builder, "linear", 4, 4);
  const Tensor x = session.zeros({2, 4}, DType::kFp32);
  for (const NamedTensor& parameter : builder.parameters())
    selftest::fill(device, parameter.tensor, 1);
  layer(x);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

}  // namespace
}  // namespace memfathom::cuda
