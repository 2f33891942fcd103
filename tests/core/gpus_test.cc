#include "core/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace memfathom {
namespace {

std::string_view name_of(std::string_view product, std::int64_t mib) {
  const Gpu* gpu = find_gpu_of_driver(product, Bytes{mib} * (1 << 20));
  return gpu != nullptr ? gpu->name : "unknown";
}

TEST(GpusTest, FindsGpusByDriverName) {
  EXPECT_EQ(name_of("NVIDIA A100-SXM4-40GB", 40537), "a100-40gb");
  EXPECT_EQ(name_of("NVIDIA A100 80GB PCIe", 81050), "a100-80gb");
  EXPECT_EQ(name_of("Tesla V100-SXM2-16GB", 16151), "v100-16gb");
  EXPECT_EQ(name_of("Tesla T4", 14914), "t4");
  EXPECT_EQ(name_of("NVIDIA H100 80GB HBM3", 81106), "h100-80gb");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 3080", 12044), "rtx-3080-12gb");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 4090 Laptop GPU", 16375), "rtx-4090-16gb-laptop");
  EXPECT_EQ(name_of("NVIDIA RTX 6000 Ada Generation", 48510), "rtx-6000-ada");
}

TEST(GpusTest, ReturnsNoGpuForAnUnknownName) {
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 3070 Ti", 8192), "unknown");
  EXPECT_EQ(name_of("NVIDIA A100-SXM4-40GB", 20096), "unknown") << "half a GPU";
  EXPECT_EQ(name_of("", 40537), "unknown");
}

TEST(GpusTest, FindsGpusByNameInAnySpelling) {
  for (const char* name : {"rtx-4090", "RTX 4090", "rtx_4090", "NVIDIA GeForce RTX 4090"}) {
    ASSERT_NE(find_gpu(name), nullptr) << name;
    EXPECT_EQ(find_gpu(name)->name, "rtx-4090");
  }
  ASSERT_NE(find_gpu("NVIDIA A100-SXM4-80GB"), nullptr);
  EXPECT_EQ(find_gpu("NVIDIA A100-SXM4-80GB")->name, "a100-80gb");
  EXPECT_EQ(find_gpu(""), nullptr);
}

TEST(GpusTest, ANameWithoutASizeIsTheGpuWithTheSmallestMemory) {
  const auto name = [](const char* alias) {
    const Gpu* gpu = find_gpu(alias);
    return gpu != nullptr ? gpu->name : "unknown";
  };
  EXPECT_EQ(name("h100"), "h100-80gb");
  EXPECT_EQ(name("A100"), "a100-40gb");
  EXPECT_EQ(name("A100-SXM4"), "a100-40gb");
  EXPECT_EQ(name("Tesla V100"), "v100-16gb");
  EXPECT_EQ(name("4090"), "rtx-4090");
  EXPECT_EQ(name("rtx4090"), "rtx-4090");
  EXPECT_EQ(name("3080"), "rtx-3080-10gb");
  EXPECT_EQ(name("a6000"), "rtx-a6000");
  EXPECT_EQ(name("rtx-4090-laptop"), "rtx-4090-16gb-laptop");
  EXPECT_EQ(name("7900xtx"), "rx-7900-xtx");
  EXPECT_EQ(name("NVIDIA-A100-SXM4-80GB"), "a100-80gb");
  EXPECT_EQ(name("A100-SXM4-80GB"), "a100-80gb");
  EXPECT_EQ(name("NVIDIA_H100_80GB_HBM3"), "h100-80gb");
  EXPECT_EQ(name("L40S"), "l40s");
  EXPECT_EQ(name("NVIDIA"), "unknown");
  EXPECT_EQ(name("90"), "unknown");
}

TEST(GpusTest, AnAmbiguousNameIsExplained) {
  EXPECT_EQ(ambiguous_gpu_sentence("a100"),
            "\"a100\" may be a100-40gb or a100-80gb: the one with the smallest memory, a100-40gb, "
            "was taken");
  EXPECT_EQ(ambiguous_gpu_sentence("4090"), "");
  EXPECT_EQ(ambiguous_gpu_sentence("a100-80gb"), "");
  EXPECT_EQ(ambiguous_gpu_sentence("banana"), "");
}

TEST(GpusTest, AnUnknownNameIsRefusedWithTheNamesThatContainIt) {
  try {
    gpu_named("a10000", "target.gpu");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("is not a known GPU"));
  }
}

TEST(GpusTest, EveryRowHasAnOwnNameAVendorAndAnArchitectureOfThatVendor) {
  for (const Gpu& gpu : gpus_by_memory()) {
    ASSERT_NE(find_gpu(gpu.name), nullptr) << gpu.name;
    EXPECT_EQ(find_gpu(gpu.name)->product, gpu.product) << "two rows are called " << gpu.name;
    EXPECT_EQ(find_gpu_of_driver(gpu.product, gpu.memory())->name, gpu.name) << gpu.product;
    EXPECT_THAT(gpu.vendor, ::testing::AnyOf("nvidia", "amd")) << gpu.name;
    EXPECT_THAT(
        std::string(gpu.architecture),
        ::testing::MatchesRegex(gpu.vendor == "nvidia" ? "sm_[1-9][0-9]+" : "gfx[1-9][0-9a-f]+"))
        << gpu.name;
    EXPECT_GT(gpu.memory_mib, 1024) << gpu.name;
  }
}

}  // namespace
}  // namespace memfathom
