#include "core/json_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;

Environment environment() {
  return {.gpu = "NVIDIA L4",
          .architecture = "sm_89",
          .memory_total = Bytes{24LL << 30},
          .ecc = true,
          .mig = "1g",
          .driver = "570",
          .cuda = "13.0",
          .cublas = "13.1",
          .cudnn = "9.19",
          .cufft = "12.0",
          .framework = "memfathom",
          .framework_version = "0.1.0",
          .os = "Linux"};
}

TEST(JsonIoTest, AnEnvironmentReadsBackEqual) {
  EXPECT_EQ(environment_from_json(to_json(environment())), environment());
}

TEST(JsonIoTest, ASampleReadsBackEqualIncludingUnmeasuredValues) {
  Sample sample;
  sample.workload = "mlp/w1024";
  sample.family = "mlp";
  sample.job = R"({"a":1})";
  sample.validation = true;
  sample.status = SampleStatus::kOutOfMemory;
  sample.status_note = "no room";
  sample.allocated_peak = Bytes{0};
  sample.device_peak = Bytes{(1LL << 53) + 1};  // not a double
  sample.device_metric = "rss";
  sample.seconds_per_step = 0.1;
  sample.repeats = 3;
  sample.stop_criterion = "spread below 0.5 %";
  sample.stages = {{"baseline", Bytes{1}}, {"context", Bytes{2}}};
  sample.workspaces = {{Library::kCufft, "rfft2", "fft ...", Bytes{77}}};
  const Sample back = sample_from_json(nlohmann::json::parse(to_json(sample).dump()));
  EXPECT_EQ(back, sample);
  EXPECT_EQ(back.reserved_peak, std::nullopt);
  EXPECT_EQ(back.allocated_peak, Bytes{0});
}

TEST(JsonIoTest, AnObservationReadsBackEqual) {
  Observation observation;
  observation.job = R"({"a":1})";
  observation.metric = Metric::kReserved;
  observation.fits = false;
  observation.gpu = "a100-40gb";
  observation.source = "lab";
  EXPECT_EQ(observation_from_json(to_json(observation)), observation);
}

TEST(JsonIoTest, AnInlineJobBecomesCanonicalText) {
  const auto json =
      nlohmann::json::parse(R"({"job": {"b": 1, "a": 2}, "metric": "device", "bytes": 5})");
  EXPECT_EQ(observation_from_json(json).job, R"({"a":2,"b":1})");
}

TEST(JsonIoTest, ACalibrationReadsBackEqual) {
  Calibration calibration;
  calibration.id = "abc";
  calibration.name = "l4/pytorch";
  calibration.environment = environment();
  calibration.created = "2026-11-16T00:00:00Z";
  calibration.source = Source::kPublished;
  calibration.usable = true;
  calibration.samples = 12;
  calibration.coefficients = {{"context", 1.5e8, 0.1, "bytes", Source::kDefault, true, 3}};
  calibration.covariance = {0.01};
  calibration.ratios = {{"", {0.9, 1.0 / 3}}, {"mlp", {}}};
  calibration.quality.coverage_90 = 0.91;
  calibration.quality.validation_rows = 4;
  calibration.supersedes = "abb";
  EXPECT_EQ(calibration_from_json(nlohmann::json::parse(to_json(calibration).dump())), calibration);
}

TEST(JsonIoTest, AWrongTypeIsAnErrorThatNamesTheKey) {
  const auto error_of = [](const char* text) -> std::string {
    try {
      sample_from_json(nlohmann::json::parse(text));
    } catch (const Error& error) {
      return error.what();
    }
    return "(no error)";
  };
  EXPECT_EQ(error_of(R"({"repeats": "three"})"),
            "sample: \"repeats\" is \"three\"; it must be a whole number of 64 bits");
  EXPECT_THAT(error_of(R"({"repeats": 3000000000})"), HasSubstr("32 bits"));
  EXPECT_THAT(error_of(R"({"device_peak_bytes": 1.5})"), HasSubstr("whole number"));
  EXPECT_THAT(error_of(R"({"device_peak_bytes": 18446744073709551615})"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of(R"({"status": "fine"})"), HasSubstr("one of ok"));
  EXPECT_THAT(error_of(R"({"stages": {}})"), HasSubstr("a list"));
  EXPECT_THAT(error_of(R"({"workspaces": [5]})"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of(R"([])"), HasSubstr("expected a JSON object"));
}

TEST(JsonIoTest, MissingKeysKeepTheirDefaults) {
  const Sample sample = sample_from_json(nlohmann::json::object());
  EXPECT_EQ(sample, Sample{});
}

}  // namespace
}  // namespace memfathom
