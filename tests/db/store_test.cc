#include "db/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_io.h"
#include "db/calibration_file.h"
#include "tests/db/examples.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreTest : public ::testing::Test {
 protected:
  Store reopened() const { return Store::open(path_, Store::Mode::kReadOnly); }

  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "memfathom.db";
  Store store_ = Store::open(path_, Store::Mode::kReadWrite);
};

TEST_F(StoreTest, ReturnsASampleAsStored) {
  const std::string run = store_.begin_run(examples::run_of(examples::a100()));
  const std::string id = store_.insert_sample(run, examples::sample(7));
  const std::vector<StoredSample> samples = reopened().samples({});
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].id, id);
  EXPECT_EQ(samples[0].run, run);
  EXPECT_EQ(samples[0].number, 1);
  EXPECT_EQ(*samples[0].environment, examples::a100());
  EXPECT_EQ(to_json(samples[0].sample), to_json(examples::sample(7)));
}

TEST_F(StoreTest, DistinguishesNotMeasuredFromZero) {
  Sample crashed = examples::sample(1);
  crashed.status = SampleStatus::kCrashed;
  crashed.status_note = "signal 11";
  crashed.allocated_peak.reset();
  crashed.device_peak = Bytes{0};
  crashed.seconds_per_step.reset();
  crashed.stages.clear();
  crashed.workspaces.clear();
  store_.insert_sample(store_.begin_run(examples::run_of(examples::a100())), crashed);
  EXPECT_EQ(to_json(reopened().samples({}).at(0).sample), to_json(crashed));
}

TEST_F(StoreTest, KeepsDetailsOfAnyNumberInOrder) {
  Sample sample = examples::sample(3);
  for (int i = 0; i < 21; ++i) {
    sample.stages.push_back({fmt::format("stage {}", i), Bytes{i}});
    sample.workspaces.push_back({Library::kCufft, "rfft2", fmt::format("n[{}]", i), Bytes{i}});
  }
  store_.insert_sample(store_.begin_run(examples::run_of(examples::a100())), sample);
  EXPECT_EQ(to_json(reopened().samples({}).at(0).sample), to_json(sample));
}

TEST_F(StoreTest, NumbersTheSamplesOfARun) {
  const std::string run = store_.begin_run(examples::run_of(examples::a100()));
  const std::string other = store_.begin_run(examples::run_of(examples::a100()));
  store_.insert_sample(run, examples::sample(1));
  store_.insert_sample(other, examples::sample(1));
  store_.insert_samples(run, std::vector<Sample>{examples::sample(1), examples::sample(2)});
  std::vector<std::int64_t> numbers;
  SampleFilter filter;
  filter.run = run;
  for (const StoredSample& sample : store_.samples(filter)) numbers.push_back(sample.number);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
}

TEST_F(StoreTest, FindsSamplesByDeviceStackFrameworkAndUse) {
  const Environment newer = examples::after_upgrade(examples::a100());
  Sample crashed = examples::sample(2);
  crashed.status = SampleStatus::kCrashed;
  store_.insert_samples(store_.begin_run(examples::run_of(examples::a100())),
                        std::vector<Sample>{examples::sample(5), examples::sample(1), crashed});
  store_.insert_sample(store_.begin_run(examples::run_of(newer)), examples::sample(4));
  store_.insert_sample(store_.begin_run(examples::run_of(examples::a30())), examples::sample(6));

  const auto count = [&](auto change) {
    SampleFilter filter;
    change(filter);
    return store_.samples(filter).size();
  };
  EXPECT_EQ(count([](SampleFilter&) {}), 5U);
  EXPECT_EQ(count([](SampleFilter& f) { f.device_key = examples::a100().device_key(); }), 4U);
  EXPECT_EQ(count([&](SampleFilter& f) {
              f.device_key = newer.device_key(), f.stack_key = newer.stack_key();
            }),
            1U);
  EXPECT_EQ(count([](SampleFilter& f) { f.framework = "memfathom"; }), 0U);
  EXPECT_EQ(count([](SampleFilter& f) { f.only_ok = true; }), 4U);
  EXPECT_EQ(count([](SampleFilter& f) { f.validation = true; }), 1U);
  EXPECT_EQ(count([](SampleFilter& f) { f.validation = false; }), 4U);
}

TEST_F(StoreTest, HidesSamplesOfVirtualDevicesUnlessAsked) {
  store_.insert_sample(store_.begin_run(examples::run_of(examples::virtual_gpu())),
                       examples::sample(1));
  EXPECT_THAT(store_.samples({}), IsEmpty());
  SampleFilter filter;
  filter.include_virtual = true;
  EXPECT_EQ(store_.samples(filter).size(), 1U);
}

TEST_F(StoreTest, FindsTheRunToResume) {
  EXPECT_FALSE(store_.unfinished_run(examples::a100(), "quick"));
  const std::string first =
      store_.begin_run(examples::run_of(examples::a100(), "2026-11-16T10:00:00Z"));
  const std::string second =
      store_.begin_run(examples::run_of(examples::a100(), "2026-11-16T11:00:00Z"));
  EXPECT_EQ(store_.unfinished_run(examples::a100(), "quick")->id, second);
  store_.finish_run(second, "2026-11-16T11:05:00Z");
  EXPECT_EQ(store_.unfinished_run(examples::a100(), "quick")->id, first);
  EXPECT_FALSE(store_.unfinished_run(examples::a100(), "full"));
  EXPECT_FALSE(store_.unfinished_run(examples::after_upgrade(examples::a100()), "quick"));
  EXPECT_EQ(store_.runs().at(1).finished, "2026-11-16T11:05:00Z");
}

TEST_F(StoreTest, DiscardsAnUncommittedBatch) {
  const std::string run = store_.begin_run(examples::run_of(examples::a100()));
  {
    Store::Batch batch(store_);
    store_.insert_sample(run, examples::sample(1));
  }
  EXPECT_THAT(store_.samples({}), IsEmpty());
  Store::Batch batch(store_);
  store_.insert_sample(run, examples::sample(1));
  batch.commit();
  EXPECT_EQ(reopened().samples({}).size(), 1U);
}

TEST_F(StoreTest, RefusesAJobThatIsNotJson) {
  Sample sample = examples::sample(1);
  sample.job = "{not json";
  const std::string run = store_.begin_run(examples::run_of(examples::a100()));
  try {
    store_.insert_sample(run, sample);
    FAIL() << "stored";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("json_valid"));
  }
  EXPECT_THAT(store_.samples({}), IsEmpty());
}

TEST_F(StoreTest, StoresAnObservationOnce) {
  EXPECT_TRUE(store_.insert_observation(examples::observation(1)));
  EXPECT_TRUE(store_.insert_observation(examples::observation(3)));
  EXPECT_FALSE(store_.insert_observation(examples::observation(1)));
  std::vector<nlohmann::json> found;
  for (const Observation& observation : reopened().observations())
    found.push_back(to_json(observation));
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(to_json(examples::observation(1)),
                                                     to_json(examples::observation(3))));
}

TEST_F(StoreTest, ARemovedObservationIsKeptAndNotUsedUntilItIsRestored) {
  store_.insert_observation(examples::observation(1));
  store_.insert_observation(examples::observation(2));
  const std::string id = store_.stored_observations().at(0).id;
  const Observation removed = store_.stored_observations().at(0).observation;
  EXPECT_TRUE(store_.set_removed(id, true, "2026-11-18T10:00:00Z", "absurd"));
  EXPECT_FALSE(store_.set_removed(id, true, "2026-11-18T10:00:00Z", "absurd")) << "it is already";
  ASSERT_EQ(store_.observations().size(), 1U);
  EXPECT_NE(store_.observations()[0], removed);
  EXPECT_TRUE(store_.is_removed(removed));
  EXPECT_FALSE(store_.insert_observation(removed)) << "observing it again does not restore it";
  EXPECT_EQ(store_.observations().size(), 1U);
  ASSERT_EQ(store_.stored_observations().size(), 2U);
  EXPECT_EQ(store_.stored_observations()[0].removal->reason, "absurd");

  // In the same second: the number decides, not the clock.
  EXPECT_TRUE(store_.set_removed(id, false, "2026-11-18T10:00:00Z", ""));
  EXPECT_FALSE(store_.is_removed(removed));
  EXPECT_EQ(store_.observations().size(), 2U);
  EXPECT_TRUE(store_.set_removed(id, true, "2026-11-18T10:00:00Z", "absurd")) << "and again";
  EXPECT_EQ(reopened().observations().size(), 1U);
  EXPECT_TRUE(reopened().check().empty());
}

TEST_F(StoreTest, ARemovedSampleIsFoundOnlyOnRequest) {
  const std::string run = store_.begin_run(examples::run_of(examples::a100()));
  const std::string id = store_.insert_sample(run, examples::sample(1));
  store_.insert_sample(run, examples::sample(2));
  EXPECT_TRUE(store_.set_removed(id, true, "2026-11-18T10:00:00Z", "busy"));
  ASSERT_EQ(store_.samples({}).size(), 1U);
  EXPECT_EQ(store_.samples({})[0].sample, examples::sample(2));
  ASSERT_EQ(store_.samples({.include_removed = true}).size(), 2U);
  EXPECT_EQ(store_.samples({.include_removed = true})[0].removal->reason, "busy");
  EXPECT_TRUE(store_.set_removed(id, false, "2026-11-18T10:00:01Z", ""));
  EXPECT_EQ(store_.samples({}).size(), 2U);
}

TEST_F(StoreTest, RefusesAnEmptyObservation) {
  Observation empty = examples::observation(1);
  empty.bytes.reset();
  EXPECT_THROW(store_.insert_observation(empty), Error);
}

TEST_F(StoreTest, ReturnsACalibrationAsSaved) {
  const Calibration saved =
      store_.save_calibration(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"));
  EXPECT_EQ(saved.id, content_id(saved));
  const std::vector<Calibration> found = reopened().calibrations();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(to_json(found[0]), to_json(saved));
  EXPECT_EQ(found[0].ratios.size(), 3U) << "a group without ratios means that it did not differ";
}

TEST_F(StoreTest, SupersedesTheOldCalibrationAndKeepsIt) {
  const Calibration old =
      store_.save_calibration(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"));
  const Calibration newer =
      store_.save_calibration(examples::calibration(examples::a100(), "2026-11-17T12:00:00Z"));
  EXPECT_EQ(old.supersedes, "");
  EXPECT_EQ(newer.supersedes, old.id);
  EXPECT_EQ(store_.calibrations().size(), 2U);
  EXPECT_EQ(store_.calibration_for(examples::a100())->id, newer.id);
}

TEST_F(StoreTest, SavesTheSameCalibrationOnce) {
  const Calibration c = examples::calibration(examples::a100(), "2026-11-16T12:00:00Z");
  EXPECT_EQ(store_.save_calibration(c).id, store_.save_calibration(c).id);
  EXPECT_EQ(store_.calibrations().size(), 1U);
}

TEST_F(StoreTest, DistinguishesACurrentCalibrationFromAStaleOne) {
  const Environment now = examples::after_upgrade(examples::a100());
  const Calibration old =
      store_.save_calibration(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"));
  EXPECT_FALSE(store_.calibration_for(now));
  EXPECT_EQ(store_.newest_of_device(now)->id, old.id);
  EXPECT_FALSE(store_.newest_of_device(examples::a30()));
  Environment ours = now;
  ours.framework = "memfathom";
  EXPECT_FALSE(store_.newest_of_device(ours)) << "a constant of PyTorch is not one of ours";
}

TEST_F(StoreTest, NeverFindsAnUnusableCalibrationForADevice) {
  Calibration refused = examples::calibration(examples::a100(), "2026-11-18T12:00:00Z");
  refused.usable = false;
  refused.refusal = "the held-out error is 40 %";
  store_.save_calibration(refused);
  EXPECT_FALSE(store_.calibration_for(examples::a100()));
  EXPECT_FALSE(store_.newest_of_device(examples::a100()));
  EXPECT_TRUE(store_.find_calibration(refused.name)) << "but it can be shown";
}

TEST_F(StoreTest, FindsTheNewestCalibrationOfEverySibling) {
  store_.save_calibration(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"));
  store_.save_calibration(examples::calibration(examples::a30(), "2026-11-16T12:00:00Z"));
  const Calibration newest = store_.save_calibration(
      examples::calibration(examples::after_upgrade(examples::a30()), "2026-11-17T12:00:00Z"));
  const std::vector<Calibration> siblings = store_.architecture_siblings(examples::a100());
  ASSERT_EQ(siblings.size(), 1U);
  EXPECT_EQ(siblings[0].id, newest.id);
  EXPECT_THAT(store_.architecture_siblings(examples::virtual_gpu()), IsEmpty());
}

TEST_F(StoreTest, FindsACalibrationByNameIdOrIdPrefix) {
  const Calibration saved =
      store_.save_calibration(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"));
  for (const std::string& key : {saved.name, saved.id, saved.id.substr(0, 8)}) {
    ASSERT_TRUE(store_.find_calibration(key)) << key;
    EXPECT_EQ(store_.find_calibration(key)->id, saved.id);
  }
  EXPECT_FALSE(store_.find_calibration("abc")) << "too short for the beginning of an id";
  EXPECT_FALSE(store_.find_calibration("h100-80gb/pytorch"));
}

TEST_F(StoreTest, RequestsMoreDigitsForAnAmbiguousIdPrefix) {
  // Among 65,536 beginnings of four digits, two of 1,500 ids share one for certain enough: the seed
  // is fixed.
  std::map<std::string, int> beginnings;
  Store::Batch batch(store_);
  for (int i = 0; i < 1500; ++i) {
    Calibration c = examples::calibration(examples::a100(), "2026-11-16T12:00:00Z", 1, 0);
    c.provenance = fmt::format("{}", i);
    c.supersedes = "none";
    ++beginnings[store_.save_calibration(c).id.substr(0, 4)];
  }
  batch.commit();
  const auto shared = std::find_if(beginnings.begin(), beginnings.end(),
                                   [](const auto& b) { return b.second > 1; });
  ASSERT_NE(shared, beginnings.end());
  EXPECT_THROW(store_.find_calibration(shared->first), Error);
}

TEST_F(StoreTest, RefusesNumbersThatAreNotFinite) {
  Calibration c = examples::calibration(examples::a100(), "2026-11-16T12:00:00Z");
  c.coefficients[1].value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(store_.save_calibration(c), Error);
  c = examples::calibration(examples::a100(), "2026-11-16T12:00:00Z");
  c.covariance.pop_back();
  EXPECT_THROW(store_.save_calibration(c), Error);
  EXPECT_THAT(store_.calibrations(), IsEmpty());
}

TEST_F(StoreTest, PrefersABaselineNameToAnIdPrefix) {
  const std::string other = store_.insert_baseline(
      {"", "nightly", examples::a100(), "2026-11-17T12:00:00Z", R"({"benchmarks":[]})"});
  const std::string named = store_.insert_baseline(
      {"", other.substr(0, 8), examples::a100(), "2026-11-16T12:00:00Z", R"({"benchmarks":[]})"});
  EXPECT_EQ(store_.find_baseline(other.substr(0, 8))->id, named);
  EXPECT_EQ(store_.find_baseline(other.substr(0, 10))->id, other);
}

TEST_F(StoreTest, RequestsMoreDigitsForAnAmbiguousBaselinePrefix) {
  std::map<std::string, int> beginnings;
  Store::Batch batch(store_);
  for (int i = 0; i < 1500; ++i) {
    ++beginnings[store_
                     .insert_baseline({"", fmt::format("b{}", i), examples::a100(),
                                       "2026-11-16T12:00:00Z", R"({"benchmarks":[]})"})
                     .substr(0, 4)];
  }
  batch.commit();
  const auto shared = std::find_if(beginnings.begin(), beginnings.end(),
                                   [](const auto& b) { return b.second > 1; });
  ASSERT_NE(shared, beginnings.end());
  EXPECT_THROW(store_.find_baseline(shared->first), Error);
}

TEST_F(StoreTest, StoresBaselinesByNameWithAnnotations) {
  Baseline baseline{"", "before-upgrade", examples::a100(), "2026-11-16T12:00:00Z",
                    R"({"benchmarks":[]})"};
  store_.insert_baseline(baseline);
  baseline.created = "2026-11-17T12:00:00Z";
  const std::string newest = store_.insert_baseline(baseline);
  ASSERT_TRUE(store_.find_baseline("before-upgrade"));
  EXPECT_EQ(store_.find_baseline("before-upgrade")->id, newest);
  EXPECT_EQ(store_.find_baseline(newest.substr(0, 10))->document, baseline.document);
  EXPECT_FALSE(store_.find_baseline("after-upgrade"));
  EXPECT_EQ(store_.baselines().size(), 2U);

  store_.annotate({"", newest, "2026-11-18T12:00:00Z", "driver 570 came with this"});
  ASSERT_EQ(store_.annotations(newest).size(), 1U);
  EXPECT_EQ(store_.annotations(newest)[0].note, "driver 570 came with this");
  EXPECT_THAT(store_.annotations("another"), IsEmpty());
}

TEST_F(StoreTest, CountsItsRowsAndReportsNoProblems) {
  const std::string empty = store_.info().fingerprint;
  store_.insert_sample(store_.begin_run(examples::run_of(examples::a100())), examples::sample(1));
  const StoreInfo info = store_.info();
  EXPECT_NE(info.fingerprint, empty);
  EXPECT_EQ(info.path, path_.string());
  EXPECT_GT(info.file_bytes, Bytes{0});
  std::map<std::string, std::int64_t> rows;
  for (const TableCount& count : info.tables) rows[count.table] = count.rows;
  EXPECT_EQ(rows["runs"], 1);
  EXPECT_EQ(rows["samples"], 1);
  EXPECT_EQ(rows["calibrations"], 0);
  EXPECT_THAT(store_.check(), IsEmpty());
}

TEST_F(StoreTest, BacksUpToANewFileOnly) {
  store_.insert_sample(store_.begin_run(examples::run_of(examples::a100())), examples::sample(1));
  const std::filesystem::path target = directory_ / "backup.db";
  store_.backup(target);
  EXPECT_EQ(Store::open(target, Store::Mode::kReadOnly).info().fingerprint,
            store_.info().fingerprint);
  EXPECT_THROW(store_.backup(target), Error);
  EXPECT_THROW(store_.backup(directory_ / "missing" / "backup.db"), Error);
  EXPECT_THROW(store_.backup(""), Error);
}

TEST_F(StoreTest, ABackupHasItsNameWhenItIsComplete) {
  const std::filesystem::path folder = directory_ / "backups";
  std::filesystem::create_directory(folder);
  // What a killed one of the same process left is no obstacle.
  std::ofstream(folder / (".a.db." + std::to_string(getpid()) + ".partial")) << "half";
  store_.backup(folder / "a.db");
  EXPECT_THAT(Store::open(folder / "a.db", Store::Mode::kReadOnly).check(), IsEmpty());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, ::testing::ElementsAre("a.db"));
}

}  // namespace
}  // namespace memfathom
