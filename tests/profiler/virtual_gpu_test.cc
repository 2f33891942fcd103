#include "profiler/virtual_gpu.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "profiler/probe_target.h"
#include "profiler/recording_workspaces.h"

namespace memfathom {
namespace {

using namespace literals;

TEST(VirtualGpuTest, DerivesItsHiddenConstantsFromItsName) {
  const VirtualGpu one("blue");
  const VirtualGpu same("blue");
  const VirtualGpu other("green");
  EXPECT_EQ(one.truth().context, same.truth().context);
  EXPECT_NE(one.truth().context, other.truth().context);
  EXPECT_EQ(one.reading(1_GiB, 5), same.reading(1_GiB, 5));
}

TEST(VirtualGpuTest, ReadingsAreWholePagesCloseToTheHiddenConstants) {
  const VirtualGpu gpu("blue");
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Bytes reading = gpu.reading(1_GiB, seed);
    EXPECT_EQ(reading.count() % (2 << 20), 0);
    EXPECT_GE(reading, 1_GiB - 2_MiB);
    EXPECT_LE(reading, 1_GiB + 4_MiB);
  }
}

TEST(VirtualGpuTest, IsMarkedAsVirtual) {
  EXPECT_TRUE(VirtualGpu("blue").environment().is_virtual());
}

TEST(VirtualGpuTest, RefusesASpecialName) {
  EXPECT_THROW(VirtualGpu(""), Error);
  EXPECT_THROW(VirtualGpu("a b"), Error);
}

TEST(DeviceNameTest, ReadsTheThreeKindsAndNothingElse) {
  EXPECT_EQ(parse_device("cpu").kind, DeviceKind::kCpu);
  EXPECT_EQ(parse_device("cuda").index, 0);
  EXPECT_EQ(parse_device("cuda:12").index, 12);
  EXPECT_EQ(parse_device("virtual:blue").name, "blue");
  for (const char* wrong : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x"})
    EXPECT_THROW(parse_device(wrong), Error) << wrong;
}

TEST(RecordingWorkspacesTest, KeepsEachDistinctRequestOnce) {
  const VirtualGpu gpu("blue");
  const RecordingWorkspaces recording(gpu, Library::kCudnn, Library::kCufft);
  ConvolutionQuery query;
  query.input = {1, 3, 8, 8};
  query.weight = {4, 3, 3, 3};
  query.stride = query.padding = query.dilation = {1, 1};
  const Bytes asked = recording.convolution(query).bytes;
  recording.convolution(query);
  FftQuery transform;
  transform.extents = {8, 8};
  recording.fft(transform);
  const std::vector<WorkspaceRequest> requests = recording.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].library, Library::kCudnn);
  EXPECT_EQ(requests[0].operation, "convolution forward");
  EXPECT_EQ(requests[0].bytes, asked);
  EXPECT_EQ(requests[1].library, Library::kCufft);
}

}  // namespace
}  // namespace memfathom
