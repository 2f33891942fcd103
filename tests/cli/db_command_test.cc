// `memfathom db` and `memfathom calibrations`, through the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "db/calibration_file.h"
#include "db/store.h"
#include "tests/cli/binary.h"
#include "tests/db/examples.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class DbCommandTest : public ::testing::Test {
 protected:
  // A database with a run of two samples and three calibrations: an old one, its successor, and one
  // that was refused.
  void SetUp() override {
    Store store = Store::open(database_, Store::Mode::kReadWrite);
    store.insert_samples(store.begin_run(examples::run_of(examples::a100())),
                         std::vector<Sample>{examples::sample(1), examples::sample(2)});
    old_ =
        store.save_calibration(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z")).id;
    new_ =
        store.save_calibration(examples::calibration(examples::a100(), "2026-11-17T12:00:00Z")).id;
    Calibration refused = examples::calibration(examples::a30(), "2026-11-18T12:00:00Z");
    refused.usable = false;
    refused.refusal = "the held-out error is 40 %";
    refused_ = store.save_calibration(refused).id;
  }

  Outcome run(std::vector<std::string> words) const { return run_on(database_, std::move(words)); }
  static Outcome run_on(const fs::path& database, std::vector<std::string> words) {
    words.insert(words.end(), {"--db", database.string()});
    return run_binary(words);
  }
  json answer(std::vector<std::string> words) const {
    words.insert(words.end(), {"--format", "json"});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }

  TemporaryDirectory directory_;
  fs::path database_ = directory_ / "fleet.db";
  std::string old_, new_, refused_;
};

TEST_F(DbCommandTest, ARemovedSampleIsListedAndLeftOutOfTheFit) {
  const json samples = answer({"samples", "list"})["samples"];
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0]["workload"], examples::sample(1).workload);
  const std::string id = samples[0]["id"];
  EXPECT_EQ(
      answer({"samples", "remove", id.substr(0, 8), "--reason", "busy"})["rows"][0]["changed"],
      true);
  EXPECT_EQ(Store::open(database_, Store::Mode::kReadOnly).samples({}).size(), 1U);
  EXPECT_EQ(answer({"samples", "list"})["samples"][0]["removed"]["reason"], "busy");
  EXPECT_EQ(answer({"samples", "restore", id})["rows"][0]["changed"], true);
  EXPECT_EQ(answer({"samples", "restore", id})["rows"][0]["changed"], false) << "it is so already";
  EXPECT_EQ(Store::open(database_, Store::Mode::kReadOnly).samples({}).size(), 2U);
}

TEST_F(DbCommandTest, InfoCountsTheRows) {
  EXPECT_THAT(run({"db", "info"}).out, HasSubstr("samples"));
  const json info = answer({"db", "info"});
  EXPECT_EQ(info["schema"], "memfathom.db-info/1");
  EXPECT_EQ(info["rows"]["samples"], 2);
  EXPECT_EQ(info["rows"]["calibrations"], 3);
}

TEST_F(DbCommandTest, CheckReportsOkOrTheProblem) {
  const Outcome well = run({"db", "check"});
  EXPECT_EQ(well.exit_code, 0);
  EXPECT_EQ(well.out, "ok\n");
  std::fstream file(database_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(std::streamoff{5} * 4096);
  file << std::string(4096, '\x55');
  file.close();
  const Outcome damaged = run({"db", "check"});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_NE(damaged.out, "");
}

TEST_F(DbCommandTest, BackupEqualsTheDatabase) {
  const fs::path copy = directory_ / "copy.db";
  EXPECT_EQ(run({"db", "backup", copy.string()}).exit_code, 0);
  EXPECT_EQ(run({"db", "backup", copy.string()}).exit_code, 2) << "never over a file";
  EXPECT_EQ(Store::open(copy, Store::Mode::kReadOnly).info().fingerprint,
            answer({"db", "info"})["fingerprint"]);
}

TEST_F(DbCommandTest, ImportsExportedCalibrations) {
  const json exported = answer({"db", "export", (directory_ / "out").string()});
  ASSERT_EQ(exported["files"].size(), 3U);
  const fs::path elsewhere = directory_ / "elsewhere.db";
  std::vector<std::string> words{"db", "import"};
  for (const json& file : exported["files"]) words.push_back(file);
  const Outcome first = run_on(elsewhere, words);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("added"));
  EXPECT_THAT(run_on(elsewhere, words).out, HasSubstr("there already"));
  EXPECT_EQ(Store::open(elsewhere, Store::Mode::kReadOnly).calibrations().size(), 3U);
}

TEST_F(DbCommandTest, ExportAcceptsNamesAndIds) {
  EXPECT_EQ(
      answer({"db", "export", (directory_ / "one").string(), old_.substr(0, 10)})["files"].size(),
      1U);
  const Outcome unknown = run({"db", "export", (directory_ / "none").string(), "h100"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no calibration has the name or id \"h100\""));
}

TEST_F(DbCommandTest, ImportStoresAllFilesOrNone) {
  const std::vector<fs::path> good = export_calibrations(
      Store::open(database_, Store::Mode::kReadOnly).calibrations(), directory_ / "out");
  const fs::path bad = directory_ / "bad.json";
  std::ofstream(bad) << "{}";
  const fs::path elsewhere = directory_ / "elsewhere.db";
  const Outcome outcome = run_on(elsewhere, {"db", "import", good[0].string(), bad.string()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("bad.json is not a calibration"));
  EXPECT_FALSE(fs::exists(elsewhere));
}

TEST_F(DbCommandTest, MergeAddsMissingRows) {
  const fs::path gathered = directory_ / "gathered.db";
  EXPECT_EQ(run_on(gathered, {"db", "merge", database_.string(), database_.string()}).exit_code, 0);
  EXPECT_EQ(Store::open(gathered, Store::Mode::kReadOnly).info().fingerprint,
            answer({"db", "info"})["fingerprint"]);
}

TEST_F(DbCommandTest, UnusableFilesExitWithTwo) {
  const fs::path text = directory_ / "notes.txt";
  std::ofstream(text) << "no database";
  for (const fs::path& file : {text, directory_ / "missing.db", directory_.path()}) {
    const Outcome outcome = run_on(file, {"db", "info"});
    EXPECT_EQ(outcome.exit_code, 2) << file;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
        << "one sentence: " << outcome.err;
  }
  EXPECT_EQ(run_on("/proc/memfathom.db", {"db", "merge", database_.string()}).exit_code, 4);
}

TEST_F(DbCommandTest, BadUsageShowsTheCorrectUsage) {
  EXPECT_THAT(run({"db", "backup"}).err, HasSubstr("memfathom db backup FILE"));
  EXPECT_THAT(run({"db", "exprot", "x"}).err, HasSubstr("\"export\""));
  EXPECT_THAT(run({"calibrations", "shwo"}).err, HasSubstr("\"show\""));
  EXPECT_EQ(run({"db"}).exit_code, 2);
  EXPECT_EQ(run({"calibrations", "show"}).exit_code, 2);
}

TEST_F(DbCommandTest, CalibrationsListHasTheKeysOfTheContract) {
  const json listed = answer({"calibrations", "list"});
  std::map<std::string, std::string> status;
  for (const json& entry : listed["calibrations"]) {
    for (const char* key : {"id", "name", "status", "device", "environment", "created", "samples",
                            "held_out_median_error"}) {
      EXPECT_TRUE(entry.contains(key)) << key;
    }
    status[entry["id"]] = entry["status"];
    if (entry["status"] == "published") status["published"] = entry["name"];
  }
  EXPECT_EQ(status[old_], "superseded");
  EXPECT_EQ(status[new_], "calibrated");
  EXPECT_EQ(status[refused_], "refused");
  EXPECT_NE(status["published"], "");
}

TEST_F(DbCommandTest, CalibrationsListNeedsNoDatabase) {
  const Outcome outcome = run_on(directory_ / "none.db", {"calibrations", "list"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("default/pytorch"));
  EXPECT_FALSE(fs::exists(directory_ / "none.db"));
}

TEST_F(DbCommandTest, CalibrationsShowAddsCoefficientsAndQuality) {
  const json shown = answer({"calibrations", "show", new_.substr(0, 12)});
  EXPECT_EQ(shown["id"], new_);
  EXPECT_EQ(shown["supersedes"], old_);
  EXPECT_EQ(shown["coefficients"].size(), 5U);
  EXPECT_EQ(shown["quality"]["coverage_90"], 0.91);
  EXPECT_THAT(run({"calibrations", "show", refused_}).out, HasSubstr("the held-out error is 40 %"));
  EXPECT_THAT(run({"calibrations", "show", "default/pytorch"}).out, HasSubstr("interval.knee"));
  EXPECT_EQ(run({"calibrations", "show", "nothing"}).exit_code, 2);
}

TEST_F(DbCommandTest, DiffListsChangedCoefficients) {
  const json same = answer({"calibrations", "diff", old_, new_});
  EXPECT_EQ(same["environment"], "the environments are the same");
  for (const json& coefficient : same["coefficients"]) EXPECT_NE(coefficient["change"], "moved");

  const Outcome table = run({"calibrations", "diff", old_, refused_});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("gpu NVIDIA"));

  EXPECT_EQ(run({"calibrations", "diff", old_}).exit_code, 2);
}

}  // namespace
}  // namespace memfathom
