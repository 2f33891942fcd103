// accuracy: compares estimates with measured jobs, and calibrates GPUs from some rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/binary.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class AccuracyCommandTest : public testing::Test {
 protected:
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--db", folder_ + "/none.db"});
    return run_binary(words, {"XDG_CACHE_HOME=" + folder_});
  }
  // The line of the only file of data.
  json score(const std::vector<json>& rows, const std::vector<std::string>& options = {}) const {
    const std::string path = folder_ + "/rows.jsonl";
    std::ofstream file(path);
    for (const json& row : rows) file << row << '\n';
    file.close();
    std::vector<std::string> words{"--format", "json", "accuracy", "--data", path};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out).at("data").at(0);
  }
  json totals(const json& job) const {
    const std::string path = folder_ + "/job.json";
    std::ofstream(path) << job;
    const Outcome outcome = run({"--format", "json", "estimate", path});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out).at("totals");
  }

  TemporaryDirectory directory_;
  const std::string folder_ = directory_.path().string();
};

json preset_job(const std::string& preset, int batch, const json& target) {
  return {{"model", {{"preset", preset}}},
          {"training", {{"batch_size", batch}, {"image_size", 64}, {"precision", "fp32"}}},
          {"target", target}};
}

json row_of(const json& job, double bytes) {
  return {{"id", "row"},
          {"job", job},
          {"measured", {{"metric", "device"}, {"bytes", static_cast<std::int64_t>(bytes)}}}};
}

TEST_F(AccuracyCommandTest, ReportsErrorsRelativeToTheMeasurement) {
  const json job = preset_job("resnet18", 4, {{"gpu", "t4"}});
  const double peak = totals(job).at("device_peak_bytes").get<double>();
  const json line = score({row_of(job, peak), row_of(job, peak / 0.8), row_of(job, peak * 4)});
  EXPECT_NEAR(line.at("median_error").get<double>(), 0.2, 1e-6);
  EXPECT_NEAR(line.at("p90_error").get<double>(), 0.75, 1e-6);
  EXPECT_NEAR(line.at("under_by_10_percent").get<double>(), 2.0 / 3, 1e-6);
  EXPECT_NEAR(line.at("error_spread").get<double>(), 0.75, 1e-6);
}

// Of 20 rows, 15 or fewer are covered with probability 0.043, 14 or fewer with 0.011.
TEST_F(AccuracyCommandTest, SaysWhereCoverageLiesByChanceWithSoManyRows) {
  const json job = preset_job("resnet18", 4, {{"gpu", "t4"}});
  const json line = score(std::vector<json>(20, row_of(job, 1e9)));
  EXPECT_NEAR(line.at("coverage_band_low").get<double>(), 15.0 / 20, 1e-9);
  EXPECT_NEAR(line.at("coverage_band_high").get<double>(), 1, 1e-9);
}

TEST_F(AccuracyCommandTest, AnchorsFitTheConstantAndTf32OfAnUnnamedGpu) {
  constexpr double kConstant = 777e6;
  std::vector<json> rows;
  for (const char* preset : {"vgg11", "vgg16", "resnet18", "resnet50"}) {
    for (const int batch : {2, 8, 32}) {
      const json truth =
          preset_job(preset, batch, {{"memory", "16GiB"}, {"architecture", "sm_75"}});
      rows.push_back(row_of(preset_job(preset, batch, {{"memory", "16GiB"}}),
                            totals(truth).at("reserved_peak_bytes").get<double>() + kConstant));
    }
  }
  EXPECT_GT(score(rows).at("p90_error").get<double>(), 0.05);
  const json calibrated = score(rows, {"--anchors", "6"});
  EXPECT_EQ(calibrated.at("rows"), 6);
  EXPECT_LT(calibrated.at("p90_error").get<double>(), 1e-6);
}

TEST_F(AccuracyCommandTest, CountsFailedRowsAndExplainsThemOnRequest) {
  const json job = preset_job("resnet18", 4, {{"gpu", "t4"}});
  json impossible = job;
  impossible["model"]["preset"] = "no-such-network";
  const json line = score({row_of(job, 1e9), row_of(impossible, 1e9)});
  EXPECT_EQ(line.at("rows"), 2);
  EXPECT_EQ(line.at("answered"), 1);
  EXPECT_THAT(run({"--verbose", "accuracy", "--data", folder_ + "/rows.jsonl"}).err,
              HasSubstr("no-such-network"));
}

TEST_F(AccuracyCommandTest, AppliesJobFlagsToEverySelectedRow) {
  const json job = preset_job("resnet18", 4, {{"gpu", "t4"}});
  json larger = job;
  larger["training"]["batch_size"] = 16;
  json row = row_of(job, totals(larger).at("device_peak_bytes").get<double>());
  row["group"] = "wanted/one";
  json other = row_of(job, 1);
  other["group"] = "other";
  const json line = score({row, other}, {"--only", "wanted", "--batch-size", "16"});
  EXPECT_EQ(line.at("rows"), 1);
  EXPECT_LT(line.at("p90_error").get<double>(), 1e-9);
  const Outcome none = run({"accuracy", "--data", folder_ + "/rows.jsonl", "--only", "nothing"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no group begins with"));
}

TEST_F(AccuracyCommandTest, RefusesAnchorsTogetherWithFolds) {
  const Outcome outcome = run({"accuracy", "--data", folder_, "--anchors", "6", "--folds", "5"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("use one of them"));
}

}  // namespace
}  // namespace memfathom
