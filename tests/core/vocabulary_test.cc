#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <span>

#include "core/calibration.h"
#include "core/dtype.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/predictor.h"
#include "core/shape.h"
#include "core/source.h"
#include "core/workspace.h"

namespace memfathom {
namespace {

TEST(DTypeTest, HasTheSizeOfEveryDtype) {
  EXPECT_EQ(bits_of(DType::kFp64), 64);
  EXPECT_EQ(bits_of(DType::kComplex64), 64);
  EXPECT_EQ(bits_of(DType::kInt64), 64);
  EXPECT_EQ(bits_of(DType::kFp32), 32);
  EXPECT_EQ(bits_of(DType::kInt32), 32);
  EXPECT_EQ(bits_of(DType::kBf16), 16);
  EXPECT_EQ(bits_of(DType::kBool), 8);
  EXPECT_EQ(bits_of(DType::kNf4), 4);
}

TEST(DTypeTest, ReadsBackItsName) {
  for (const DType type :
       {DType::kFp64, DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt64, DType::kInt32,
        DType::kInt8, DType::kUint8, DType::kBool, DType::kComplex64, DType::kNf4}) {
    EXPECT_EQ(parse_dtype(to_string(type)), type) << to_string(type);
  }
}

TEST(DTypeTest, AcceptsTheNamesOfFrameworks) {
  EXPECT_EQ(parse_dtype("torch.float16"), DType::kFp16);
  EXPECT_EQ(parse_dtype("bfloat16"), DType::kBf16);
  EXPECT_EQ(parse_dtype("BF16"), DType::kBf16);
  EXPECT_EQ(parse_dtype("fp8"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_EQ(parse_dtype("torch."), std::nullopt);
}

TEST(ShapeTest, CountsElements) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ((Shape{4, 2048, 4096}).elements(), 33554432);
  EXPECT_EQ((Shape{4, 0, 4096}).elements(), 0);
  EXPECT_EQ((Shape{1, 2, 3})[-1], 3);
}

TEST(ShapeTest, RefusesCountsThatDoNotFit) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((Shape{kMost}).elements(), kMost);
  EXPECT_THROW((Shape{kMost, 2}).elements(), Error);
  EXPECT_THROW((Shape{1LL << 32, 1LL << 31}).elements(), Error);
  EXPECT_EQ((Shape{1LL << 32, 1LL << 30}).elements(), 1LL << 62);
  EXPECT_THROW((Shape{4, -1}).elements(), Error);
  EXPECT_THROW(size_of(Shape{1LL << 61}, DType::kFp32), Error);
}

TEST(ShapeTest, HasAtMostEightExtents) {
  EXPECT_EQ((Shape{1, 1, 1, 1, 1, 1, 1, 1}).rank(), 8);
  const std::vector<std::int64_t> nine(9, 1);
  EXPECT_THROW(Shape{std::span<const std::int64_t>(nine)}, Error);
}

TEST(ShapeTest, FourBitElementsTakeHalfAByteRoundedUp) {
  EXPECT_EQ(size_of(Shape{3}, DType::kNf4), Bytes{2});
  EXPECT_EQ(size_of(Shape{4}, DType::kNf4), Bytes{2});
  EXPECT_EQ(size_of(Shape{3, 5}, DType::kBf16), Bytes{30});
}

TEST(ErrorTest, EveryKindHasItsName) {
  EXPECT_STREQ(to_string(ErrorKind::kUsage), "usage");
  EXPECT_STREQ(to_string(ErrorKind::kInput), "input");
  EXPECT_STREQ(to_string(ErrorKind::kEnvironment), "environment");
  EXPECT_STREQ(to_string(ErrorKind::kOutOfMemory), "out_of_memory");
  EXPECT_STREQ(to_string(ErrorKind::kInternal), "internal");
}

TEST(SourceTest, NamesReadBack) {
  for (const Source source :
       {Source::kExact, Source::kMeasured, Source::kFitted, Source::kPublished, Source::kDefault}) {
    EXPECT_EQ(parse_source(to_string(source)), source);
  }
  EXPECT_EQ(parse_source("guessed"), std::nullopt);
}

Environment a100() {
  Environment environment;
  environment.gpu = "NVIDIA A100-SXM4-40GB";
  environment.architecture = "sm_80";
  environment.memory_total = Bytes{42505273344};
  environment.driver = "550.54";
  environment.cudnn = "9.1.0";
  environment.framework = "pytorch";
  environment.framework_version = "2.6.0";
  return environment;
}

TEST(EnvironmentTest, HasTheKindOfEveryDevice) {
  const auto kind = [](std::string gpu, std::string architecture) {
    Environment environment;
    environment.gpu = std::move(gpu);
    environment.architecture = std::move(architecture);
    return environment.kind();
  };
  EXPECT_EQ(a100().kind(), DeviceKind::kCuda);
  EXPECT_EQ(kind("NVIDIA B300", "sm_103"), DeviceKind::kCuda);
  EXPECT_EQ(kind("AMD EPYC 7B13, 2 cores (cpu)", "x86_64"), DeviceKind::kCpu);
  EXPECT_EQ(kind("unknown, 8 cores (cpu)", "aarch64"), DeviceKind::kCpu);
  EXPECT_EQ(kind("virtual:blue", "virtual"), DeviceKind::kVirtual);
  EXPECT_EQ(kind("dry", "dry"), DeviceKind::kDry);
}

TEST(EnvironmentTest, AnUnknownKindOfDeviceIsAnErrorAndNotTheCpu) {
  Environment environment = a100();
  for (const char* architecture : {"gfx90a", "", "sm_", "xe_hpc"}) {
    environment.architecture = architecture;
    try {
      environment.kind();
      FAIL() << architecture;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_NE(std::string(error.what()).find("of an unknown kind"), std::string::npos);
    }
  }
}

TEST(EnvironmentTest, AnotherDriverIsTheSameDeviceOnAnotherStack) {
  Environment upgraded = a100();
  upgraded.driver = "570.10";
  EXPECT_EQ(a100().device_key(), upgraded.device_key());
  EXPECT_NE(a100().stack_key(), upgraded.stack_key());
}

TEST(EnvironmentTest, IgnoresAFewMebibytesReservedByTheDriver) {
  Environment other = a100();
  other.memory_total -= Bytes{6 << 20};
  EXPECT_EQ(a100().device_key(), other.device_key());
}

TEST(EnvironmentTest, EveryPartOfTheIdentityMatters) {
  const auto changed = [](auto change) {
    Environment environment = a100();
    change(environment);
    return environment;
  };
  EXPECT_NE(changed([](auto& e) { e.gpu = "NVIDIA A100-SXM4-80GB"; }).device_key(),
            a100().device_key());
  EXPECT_NE(changed([](auto& e) { e.memory_total = Bytes{81LL << 30}; }).device_key(),
            a100().device_key());
  EXPECT_NE(changed([](auto& e) { e.ecc = true; }).device_key(), a100().device_key());
  EXPECT_NE(changed([](auto& e) { e.mig = "3g.20gb"; }).device_key(), a100().device_key());
  EXPECT_NE(changed([](auto& e) { e.cudnn = "9.2.0"; }).stack_key(), a100().stack_key());
  EXPECT_NE(changed([](auto& e) { e.framework = "memfathom"; }).stack_key(), a100().stack_key());
  EXPECT_EQ(changed([](auto& e) { e.os = "Linux 6.8"; }).stack_key(), a100().stack_key());
}

TEST(WorkspaceTest, QueriesHaveCanonicalTexts) {
  ConvolutionQuery query;
  query.kind = ConvolutionKind::kDataGradient;
  query.input = {32, 3, 224, 224};
  query.weight = {64, 3, 7, 7};
  query.stride = {2, 2};
  query.padding = {3, 3};
  query.dilation = {1, 1};
  query.channels_last = true;
  query.dtype = DType::kFp16;
  EXPECT_EQ(to_string(query),
            "conv data_gradient fp16 nhwc x[32,3,224,224] w[64,3,7,7] s[2,2] p[3,3] d[1,1] g1");
  ConvolutionQuery transposed = query;
  transposed.transposed = true;
  transposed.output_padding = {1, 1};
  EXPECT_NE(to_string(transposed), to_string(query));
  ConvolutionQuery benchmarked = query;
  benchmarked.benchmark = true;
  EXPECT_NE(to_string(benchmarked), to_string(query));
  EXPECT_EQ(to_string(FftQuery{FftKind::kComplexToReal, {64, 64}, 320, DType::kFp32}),
            "fft complex_to_real fp32 n[64,64] b320");
}

TEST(WorkspaceTest, LibraryNamesReadBack) {
  for (const Library library : {Library::kCublas, Library::kCublasLt, Library::kCudnn,
                                Library::kCufft, Library::kOnednn, Library::kFftw}) {
    EXPECT_EQ(parse_library(to_string(library)), library);
  }
  EXPECT_EQ(parse_library("mkl"), std::nullopt);
}

TEST(CalibrationTest, UsesTheFallbackForAMissingCoefficient) {
  Calibration calibration;
  calibration.coefficients.push_back({.name = "context", .value = 5});
  EXPECT_EQ(calibration.value_of("context", 1), 5);
  EXPECT_EQ(calibration.value_of("framework", 1), 1);
}

}  // namespace
}  // namespace memfathom
