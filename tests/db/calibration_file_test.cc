#include "db/calibration_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/interval.h"
#include "core/json_io.h"
#include "db/embedded.h"
#include "db/published.h"
#include "db/store.h"
#include "tests/db/examples.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

Calibration with_id(Calibration calibration) {
  calibration.id = content_id(calibration);
  return calibration;
}

std::string refusal_of(const std::string& text) {
  try {
    from_calibration_file(text, "x.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "";
}

TEST(CalibrationFileTest, ReadsBackWhatItWrote) {
  const Calibration calibration =
      with_id(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z", 7, 33));
  EXPECT_EQ(to_json(from_calibration_file(to_calibration_file(calibration), "x.json")),
            to_json(calibration));
}

TEST(CalibrationFileTest, MovesFromOneDatabaseToAnother) {
  const TemporaryDirectory directory;
  Store from = Store::open(directory / "from.db", Store::Mode::kReadWrite);
  from.save_calibration(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"));
  from.save_calibration(examples::calibration(examples::a100(), "2026-11-17T12:00:00Z"));
  from.save_calibration(examples::calibration(examples::a30(), "2026-11-17T12:00:00Z"));
  const std::vector<fs::path> files = export_calibrations(from.calibrations(), directory / "out");
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].filename().string().substr(0, 18), "a100-40gb-pytorch-");

  Store to = Store::open(directory / "to.db", Store::Mode::kReadWrite);
  for (const fs::path& file : files)
    EXPECT_TRUE(to.import_calibration(read_calibration_file(file)));
  for (const fs::path& file : files)
    EXPECT_FALSE(to.import_calibration(read_calibration_file(file)));
  ASSERT_EQ(to.calibrations().size(), 3U);
  for (const Calibration& calibration : from.calibrations()) {
    EXPECT_EQ(to_json(*to.find_calibration(calibration.id)), to_json(calibration));
  }
}

TEST(CalibrationFileTest, RefusesAModifiedFile) {
  nlohmann::json document = nlohmann::json::parse(to_calibration_file(
      with_id(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"))));
  document["coefficients"][0]["value"] = 7;
  EXPECT_THAT(refusal_of(document.dump()),
              AllOf(HasSubstr("x.json was changed"), HasSubstr("remove its \"id\"")));
  document.erase("id");
  EXPECT_EQ(from_calibration_file(document.dump(), "x.json").value_of("phi.cudnn.forward.0", 0), 7);
}

TEST(CalibrationFileTest, RefusesOtherFiles) {
  for (const char* text :
       {"", "{", "[]", "7", R"({"schema": "memfathom.estimate/1"})", R"({"schema": 7})"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("x.json is not a calibration")) << text;
  }
  EXPECT_THAT(refusal_of(R"({"schema": "memfathom.calibration/1", "covariance": [1, 2]})"),
              HasSubstr("x.json: "));
  EXPECT_THAT(refusal_of(R"({"schema": "memfathom.calibration/1", "coefficients": 7})"),
              HasSubstr("x.json: "));
}

TEST(CalibrationFileTest, RefusesAFileOfSixtyThousandLevels) {
  const std::string deep = std::string(60'000, '[') + std::string(60'000, ']');
  EXPECT_THAT(refusal_of(R"({"schema": "memfathom.calibration/1", "name": )" + deep + "}"),
              AllOf(HasSubstr("x.json is not a calibration"), HasSubstr("levels deep")));
}

TEST(CalibrationFileTest, NamesAFileThatCannotBeRead) {
  const TemporaryDirectory directory;
  EXPECT_THROW(read_calibration_file(directory / "missing.json"), Error);
  EXPECT_THROW(read_calibration_file(directory.path()), Error);
}

TEST(CalibrationFileTest, KeepsAMaliciousNameInsideTheFolder) {
  const TemporaryDirectory directory;
  Calibration calibration = examples::calibration(examples::a100(), "2026-11-16T12:00:00Z");
  calibration.name = "../../etc/passwd";
  const std::vector<fs::path> files =
      export_calibrations({with_id(calibration)}, directory / "out");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].parent_path(), directory / "out");
  EXPECT_TRUE(fs::exists(files[0]));
}

TEST(CalibrationFileTest, ImportsOnlyUnderTheIdOfItsContent) {
  const TemporaryDirectory directory;
  Store store = Store::open(directory / "x.db", Store::Mode::kReadWrite);
  Calibration calibration =
      with_id(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"));
  calibration.usable = false;
  EXPECT_THROW(store.import_calibration(calibration), Error);
}

TEST(PublishedCalibrationsTest, AreNotMarkedAsMeasured) {
  ASSERT_FALSE(published_calibrations().empty());
  for (const Calibration& calibration : published_calibrations()) {
    EXPECT_TRUE(calibration.source == Source::kPublished || calibration.source == Source::kDefault)
        << calibration.name;
    EXPECT_FALSE(calibration.provenance.empty()) << calibration.name;
    EXPECT_FALSE(calibration.environment.is_virtual()) << calibration.name;
    for (const Coefficient& c : calibration.coefficients) {
      EXPECT_TRUE(c.source == Source::kPublished || c.source == Source::kDefault)
          << calibration.name << " " << c.name;
    }
  }
}

TEST(PublishedCalibrationsTest, IncludeAllFilesOfTheFolder) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(project_directory() / "db/published")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto same = [&](const EmbeddedFile& e) {
      return e.name == entry.path().filename().string() && e.text == text;
    };
    EXPECT_TRUE(std::any_of(published_files().begin(), published_files().end(), same))
        << entry.path() << " is not in the list of db/CMakeLists.txt";
    ++files;
  }
  EXPECT_EQ(published_files().size(), files);
}

TEST(PublishedCalibrationsTest, HaveAPyTorchDefaultWiderThanAnyGpuCalibration) {
  const std::optional<Calibration> found = find_published_calibration("default/pytorch");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, Source::kDefault);
  const auto width_of = [](const Calibration& calibration) {
    const Bytes job{std::int64_t{4} << 30};
    const PredictionInterval interval = prediction_interval(calibration, "", job, 0.9);
    EXPECT_EQ(interval.level, 0.9) << calibration.name;
    return interval.high - interval.low;
  };
  for (const Calibration& other : published_calibrations()) {
    if (other.name == "current/pytorch") continue;  // fitted to contexts: it has no ratios of jobs
    EXPECT_GE(*other.quality.coverage_90, 0.85) << other.name;
    if (other.name != found->name) {
      EXPECT_LT(width_of(other), width_of(*found)) << other.name;
    }
  }
  EXPECT_EQ(find_published_calibration(found->id)->name, "default/pytorch");
  EXPECT_FALSE(find_published_calibration("default/none"));
}

}  // namespace
}  // namespace memfathom
