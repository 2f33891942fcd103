// Attention through cuDNN's fused engines, and through our own kernels where it has none.
#include <cudnn_graph.h>

#include <cmath>
#include <deque>
#include <functional>

#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/element/load.h"
#include "kernels/devices/element/random.h"
#include "kernels/devices/reference/reference.h"
#include "kernels/framework/device/attention_query.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using testing::HasSubstr;

class CudaAttentionTest : public DoubledTest {};

struct Extents {
  std::int64_t heads = 2, key_heads = 2, queries = 5, keys = 5, size = 8;
  DType type = DType::kBf16;
};

// A call on the device and the same call on the host.
class Twins {
 public:
  Twins(Device& device, const Extents& extents, bool causal)
      : device_(device), tensors_(device), extents_(extents) {
    on_device.causal = on_host.causal = causal;
    on_device.scale = on_host.scale = 0.3;
    for (const auto member : {&AttentionCall::q, &AttentionCall::out}) add(member, queries());
    for (const auto member : {&AttentionCall::k, &AttentionCall::v}) add(member, keys());
    const Shape rows{2, extents.heads, extents.queries};
    on_device.logsumexp = tensors_.make(DType::kFp32, rows);
    on_host.logsumexp = host(DType::kFp32, rows);
  }

  void add_gradients() {
    on_device.backward = on_host.backward = true;
    for (const auto member : {&AttentionCall::dout, &AttentionCall::dq}) add(member, queries());
    for (const auto member : {&AttentionCall::dk, &AttentionCall::dv}) add(member, keys());
  }
  Bytes bring_workspace() {
    const Bytes bytes = device_.workspaces().attention(query_of(on_device)).bytes;
    if (bytes > Bytes{}) on_device.workspace = tensors_.bytes(bytes.count());
    return bytes;
  }
  void run() {
    device_.run(on_device);
    run_reference(on_host);
  }
  // The largest difference between the two in one tensor.
  double difference(Operand AttentionCall::*member) {
    const Operand& got = on_device.*member;
    const Operand& wanted = on_host.*member;
    std::vector<float> content(static_cast<std::size_t>(got.shape.elements()));
    device_.copy_to_host(content.data(), got.data, size_of(got.shape, got.dtype));
    double worst = 0;
    for (std::int64_t i = 0; i < got.shape.elements(); ++i) {
      const double a = element::load<float>(content.data(), got.dtype, i);
      const double b = element::load<float>(wanted.data, wanted.dtype, i);
      worst = std::max(worst, std::isnan(a) ? HUGE_VAL : std::abs(a - b));
    }
    return worst;
  }
  void give(Operand AttentionCall::*member, const Operand& operand) { on_device.*member = operand; }
  DeviceTensors& tensors() { return tensors_; }

  AttentionCall on_device, on_host;

 private:
  Shape queries() const { return {2, extents_.queries, extents_.heads, extents_.size}; }
  Shape keys() const { return {2, extents_.keys, extents_.key_heads, extents_.size}; }

  Operand host(DType type, const Shape& shape) {
    std::vector<float>& memory = memory_.emplace_back();
    memory.resize(static_cast<std::size_t>(shape.elements()));
    return {memory.data(), type, shape, element::contiguous_strides(shape)};
  }
  static void exchange(Operand& operand) {
    std::swap(operand.shape[1], operand.shape[2]);
    std::swap(operand.strides[1], operand.strides[2]);
  }
  void add(Operand AttentionCall::*member, const Shape& shape) {
    Operand on_host_side = host(extents_.type, shape);
    Operand on_device_side = tensors_.make(extents_.type, shape);
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      element::store<float>(on_host_side.data, extents_.type, i,
                            element::uniform(7, 0, drawn_++) - 0.5F);
    }
    device_.copy_from_host(on_device_side.data, on_host_side.data, size_of(shape, extents_.type));
    exchange(on_host_side);
    exchange(on_device_side);
    on_host.*member = on_host_side;
    on_device.*member = on_device_side;
  }

  Device& device_;
  DeviceTensors tensors_;
  Extents extents_;
  std::deque<std::vector<float>> memory_;
  std::uint64_t drawn_ = 0;
};

int launches() { return doubles::calls_of("cudaLaunchKernel"); }
int executions() { return doubles::calls_of("cudnnBackendExecute"); }

TEST_F(CudaAttentionTest, SixteenBitAttentionRunsOnCudnnForwardAndBackwardAndAgrees) {
  for (const DType type : {DType::kFp16, DType::kBf16}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t key_heads : {4, 2}) {
        SCOPED_TRACE(key_heads);
        doubles::reset();
        CudaDevice device(0);
        Twins twins(device, {.heads = 4, .key_heads = key_heads, .type = type}, causal);
        twins.bring_workspace();
        twins.run();
        const double tolerance = type == DType::kFp16 ? 2e-3 : 2e-2;
        EXPECT_LT(twins.difference(&AttentionCall::out), tolerance);
        twins.add_gradients();
        twins.bring_workspace();
        twins.run();
        for (const auto member : {&AttentionCall::dq, &AttentionCall::dk, &AttentionCall::dv})
          EXPECT_LT(twins.difference(member), tolerance);
        EXPECT_EQ(executions(), 2);
        EXPECT_EQ(launches(), 0);
      }
    }
  }
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

TEST_F(CudaAttentionTest, BackwardWorkspaceIsTheFp32QueryGradientAndARowSum) {
  CudaDevice device(0);
  Twins twins(device, {}, true);
  EXPECT_EQ(twins.bring_workspace(), Bytes{1 << 20});
  EXPECT_EQ(device.workspaces().attention(query_of(twins.on_device)).source, Source::kMeasured);
  twins.add_gradients();
  const std::int64_t rows = std::int64_t{2} * 2 * 5;
  EXPECT_EQ(twins.bring_workspace(), Bytes{(1 << 20) + rows * 8 * 4 + rows * 4});
}

// One projection gives q, k and v side by side: the rows of each are three times as far apart.
TEST_F(CudaAttentionTest, PassesViewsOfOneProjectionWithoutACopy) {
  CudaDevice device(0);
  Twins twins(device, {.type = DType::kFp16}, false);
  const Operand whole = twins.tensors().make(DType::kFp16, {2, 5, 3, 2, 8});
  std::int64_t part = 0;
  for (const auto member : {&AttentionCall::q, &AttentionCall::k, &AttentionCall::v}) {
    const Operand& dense = twins.on_device.*member;
    std::vector<std::uint16_t> content(std::size_t{2} * 5 * 2 * 8);
    device.copy_to_host(content.data(), dense.data, size_of(dense.shape, dense.dtype));
    Operand view = dense;
    view.data = static_cast<char*>(whole.data) + part * 16 * 2;
    view.strides = {std::int64_t{5} * 48, 8, 48, 1};
    for (std::int64_t row = 0; row < 10; ++row) {
      device.copy_from_host(static_cast<char*>(view.data) + row * 48 * 2, content.data() + row * 16,
                            Bytes{32});
    }
    twins.give(member, view);
    ++part;
  }
  twins.bring_workspace();
  twins.run();
  EXPECT_EQ(executions(), 1);
  EXPECT_LT(twins.difference(&AttentionCall::out), 2e-3);
  EXPECT_THAT(to_string(query_of(twins.on_device)), HasSubstr("q/[240,8,48,1]"));
}

TEST_F(CudaAttentionTest, UsesOwnKernelsForUnsupportedCases) {
  struct Case {
    const char* name;
    Extents extents;
    std::function<void(Twins&)> change;
    doubles::Machine machine;
  };
  const auto nothing = [](Twins&) {};
  const Case cases[] = {
      {"before Ampere", {}, nothing, {.major = 7, .minor = 5}},
      {"fp32", {.type = DType::kFp32}, nothing, {}},
      {"a head that is no multiple of 8", {.size = 12}, nothing, {}},
      {"a wide head", {.size = 136}, nothing, {}},
      {"lengths that an old cuDNN gets wrong", {}, nothing, {.cudnn = 91500}},
      {"a cuDNN with known mistakes",
       {.heads = 1, .key_heads = 1, .queries = 128, .keys = 128},
       nothing,
       {.cudnn = 91001}},
      {"a single key", {.queries = 1, .keys = 1}, nothing, {}},
      {"a single query", {.queries = 1}, nothing, {}},
      {"the memory-efficient kernel",
       {},
       [](Twins& t) { t.on_device.kernel = AttentionKernel::kEfficient; },
       {}},
      {"dropout", {}, [](Twins& t) { t.on_device.dropout = t.on_host.dropout = 0.5; }, {}},
      {"no workspace", {}, [](Twins& t) { t.on_device.workspace = {}; }, {}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    doubles::reset(c.machine);
    CudaDevice device(0);
    Twins twins(device, c.extents, true);
    twins.bring_workspace();
    c.change(twins);
    twins.run();
    EXPECT_EQ(executions(), 0);
    EXPECT_EQ(launches(), 1);
    EXPECT_LT(twins.difference(&AttentionCall::out), 2e-2);
  }
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

TEST_F(CudaAttentionTest, OldCudnnRunsLength128) {
  doubles::reset({.cudnn = 91500});
  CudaDevice device(0);
  Twins twins(device, {.heads = 1, .key_heads = 1, .queries = 128, .keys = 128}, true);
  twins.bring_workspace();
  twins.run();
  EXPECT_EQ(executions(), 1);
  EXPECT_LT(twins.difference(&AttentionCall::out), 2e-2);
}

// pytorch#196678: NaN in the gradient of the queries.
TEST_F(CudaAttentionTest, UsesOwnKernelsForHalfATileOfKeysOnHopperBefore926) {
  const auto takes = [](const doubles::Machine& machine, const AttentionQuery& query) {
    doubles::reset(machine);
    CudaDevice device(0);
    return device.workspaces().attention(query).bytes > Bytes{};
  };
  const AttentionQuery wrong{
      .backward = true, .dtype = DType::kBf16, .q = {1, 1, 8, 8}, .k = {1, 1, 192, 8}};
  EXPECT_FALSE(takes({.major = 9, .minor = 0, .cudnn = 92501}, wrong));
  EXPECT_TRUE(takes({.major = 9, .minor = 0, .cudnn = 92600}, wrong));
  EXPECT_TRUE(takes({.major = 10, .minor = 0, .cudnn = 92501}, wrong));
  AttentionQuery right = wrong;
  right.causal = true;
  EXPECT_TRUE(takes({.major = 9, .minor = 0, .cudnn = 92501}, right));
  right = wrong;
  right.backward = false;
  EXPECT_TRUE(takes({.major = 9, .minor = 0, .cudnn = 92501}, right));
  right = wrong;
  right.k[2] = 256;
  EXPECT_TRUE(takes({.major = 9, .minor = 0, .cudnn = 92501}, right));
}

TEST_F(CudaAttentionTest, UsesOwnKernelsForMoreHeadsThanTheGridLimit) {
  CudaDevice device(0);
  AttentionQuery query{.dtype = DType::kBf16, .q = {1, 65535, 8, 8}, .k = {1, 65535, 8, 8}};
  EXPECT_GT(device.workspaces().attention(query).bytes, Bytes{});
  query.q[1] = query.k[1] = 65536;
  EXPECT_EQ(device.workspaces().attention(query).bytes, Bytes{});
  query.q = query.k = {65536, 1, 8, 8};
  EXPECT_EQ(device.workspaces().attention(query).bytes, Bytes{});
}

// A slice of a tensor may start anywhere; cuDNN was promised 16 bytes.
TEST_F(CudaAttentionTest, UsesOwnKernelsForMisalignedOperands) {
  CudaDevice device(0);
  Twins twins(device, {}, false);
  twins.bring_workspace();
  const Operand longer = twins.tensors().make(DType::kBf16, {2 * 5 * 2 * 8 + 4});
  Operand shifted = twins.on_device.q;
  shifted.data = static_cast<char*>(longer.data) + 8;
  twins.give(&AttentionCall::q, shifted);
  twins.run();
  EXPECT_EQ(executions(), 0);
  EXPECT_EQ(launches(), 1);
}

TEST_F(CudaAttentionTest, DoesNotRetryAnEngineThatCannotBeBuilt) {
  CudaDevice device(0);
  Twins twins(device, {}, false);
  doubles::fail("cudnnBackendFinalize(plan)", 1, CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(twins.bring_workspace(), Bytes{});
  EXPECT_EQ(device.workspaces().attention(query_of(twins.on_device)).source, Source::kDefault);
  twins.run();
  EXPECT_EQ(launches(), 1);
  EXPECT_EQ(doubles::calls_of("cudnnBackendFinalize(plan)"), 1);
}

TEST_F(CudaAttentionTest, RetriesAnEngineThatRanOutOfMemory) {
  CudaDevice device(0);
  Twins twins(device, {}, true);
  doubles::fail("cudnnBackendFinalize(plan)", 1,
                CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
  EXPECT_THAT(error_of([&] { twins.bring_workspace(); }), HasSubstr("out_of_memory: "));
  twins.bring_workspace();
  twins.run();
  EXPECT_EQ(executions(), 1);
}

TEST_F(CudaAttentionTest, FailedHandleCreationIsAnErrorAndTheNextAttemptSucceeds) {
  CudaDevice device(0);
  Twins twins(device, {}, false);
  doubles::fail("cudnnCreate", 1, CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_THAT(error_of([&] { twins.bring_workspace(); }), HasSubstr("cudnnCreate"));
  twins.bring_workspace();
  twins.run();
  EXPECT_EQ(executions(), 1);
}

TEST_F(CudaAttentionTest, AFailedExecutionMakesTheDeviceUnusable) {
  CudaDevice device(0);
  Twins twins(device, {}, false);
  twins.bring_workspace();
  doubles::fail("cudnnBackendExecute", 1, CUDNN_STATUS_EXECUTION_FAILED);
  EXPECT_THAT(error_of([&] { twins.run(); }), HasSubstr("cudnnBackendExecute"));
  EXPECT_THAT(error_of([&] { twins.run(); }), HasSubstr("unusable"));
  EXPECT_THAT(error_of([&] { twins.bring_workspace(); }), HasSubstr("unusable"));
}

TEST_F(CudaAttentionTest, UsesOwnKernelsIfCudnnRefusesAtRunTime) {
  CudaDevice device(0);
  Twins twins(device, {}, true);
  twins.bring_workspace();
  doubles::fail("cudnnBackendExecute", 1, CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  for (int step = 0; step < 2; ++step) {
    twins.run();
    EXPECT_LT(twins.difference(&AttentionCall::out), 0.01);
  }
  EXPECT_EQ(doubles::calls_of("cudnnBackendExecute"), 1);
}

TEST_F(CudaAttentionTest, ConvolutionsAndAttentionShareOneHandle) {
  CudaDevice device(0);
  Twins twins(device, {}, false);
  twins.bring_workspace();
  ConvolutionQuery query;
  query.input = {1, 1, 2, 2};
  query.weight = {1, 1, 1, 1};
  query.stride = query.dilation = {1, 1};
  query.padding = {0, 0};
  device.workspaces().convolution(query);
  EXPECT_EQ(doubles::calls_of("cudnnCreate"), 1);
}

}  // namespace
}  // namespace memfathom::cuda
