#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_io.h"
#include "db/connection.h"
#include "db/store.h"
#include "tests/db/examples.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The content of a database without row numbers, which depend on the insertion order.
nlohmann::json content_of(const Store& store) {
  nlohmann::json content;
  for (const Run& run : store.runs()) {
    content["runs"][run.id] = {to_json(run.environment), run.plan, run.started,
                               run.finished.value_or("-"), run.program};
  }
  SampleFilter all;
  all.include_virtual = true;
  all.include_removed = true;
  for (const StoredSample& s : store.samples(all))
    content["samples"][s.id] = {s.run, s.number, to_json(s.sample)};
  for (const Observation& o : store.observations()) content["observations"].push_back(to_json(o));
  for (const Calibration& c : store.calibrations()) content["calibrations"][c.id] = to_json(c);
  for (const Baseline& b : store.baselines())
    content["baselines"][b.id] = {b.name, b.created, b.document};
  for (const Annotation& a : store.annotations(""))
    content["annotations"][a.id] = {a.subject, a.created, a.note};
  for (const Removal& r : store.removals())
    content["removals"][r.id] = {r.subject, r.number, r.removed, r.created, r.reason};
  return content;
}

class MergeTest : public ::testing::Test {
 protected:
  // Three members of a fleet. The first two began as copies of one database, and both went on with
  // its run.
  void SetUp() override {
    Store common = open("a.db");
    const std::string run = common.begin_run(examples::run_of(examples::a100()));
    common.insert_samples(run, std::vector<Sample>{examples::sample(1), examples::sample(2)});
    common.save_calibration(examples::calibration(examples::a100(), "2026-11-16T12:00:00Z"));
    common.backup(directory_ / "b.db");

    Store a = open("a.db");
    a.insert_sample(run, examples::sample(3));
    a.finish_run(run, "2026-11-16T12:30:00Z");
    a.save_calibration(examples::calibration(examples::a100(), "2026-11-17T12:00:00Z"));
    a.insert_observation(examples::observation(1));

    Store b = open("b.db");
    b.insert_sample(run, examples::sample(4));  // number 3 of the run, here too
    b.finish_run(run, "2026-11-16T12:40:00Z");
    b.insert_observation(examples::observation(1));
    b.insert_observation(examples::observation(3));
    const std::string baseline = b.insert_baseline(
        {"", "nightly", examples::a100(), "2026-11-16T12:00:00Z", R"({"benchmarks":[]})"});
    b.annotate({"", baseline, "2026-11-16T13:00:00Z", "the new driver"});

    // Removed in both, and restored in one of them afterwards.
    const std::string removed = a.stored_observations().at(0).id;
    a.set_removed(removed, true, "2026-11-18T12:00:00Z", "busy");
    b.set_removed(removed, true, "2026-11-18T09:00:00Z", "busy");
    b.set_removed(removed, false, "2026-11-18T10:00:00Z", "it was not");

    Store c = open("c.db");
    c.insert_sample(c.begin_run(examples::run_of(examples::a30())), examples::sample(1));
    c.insert_sample(c.begin_run(examples::run_of(examples::virtual_gpu())), examples::sample(1));
    c.save_calibration(
        examples::calibration(examples::after_upgrade(examples::a30()), "2026-11-17T12:00:00Z"));
  }

  Store open(const std::string& name) {
    return Store::open(directory_.path() / name, Store::Mode::kReadWrite);
  }

  TemporaryDirectory directory_;
};

TEST_F(MergeTest, GivesTheSameDatabaseInAnyOrder) {
  std::vector<std::string> order{"a.db", "b.db", "c.db"};
  nlohmann::json expected;
  std::string fingerprint;
  int permutation = 0;
  do {
    Store gathered = open(fmt::format("gathered-{}.db", permutation++));
    for (const std::string& name : order) gathered.merge(open(name));
    EXPECT_THAT(gathered.check(), IsEmpty());
    if (expected.is_null()) {
      expected = content_of(gathered);
      fingerprint = gathered.info().fingerprint;
    }
    EXPECT_EQ(content_of(gathered), expected);
    EXPECT_EQ(gathered.info().fingerprint, fingerprint);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(permutation, 6);
  EXPECT_EQ(expected["samples"].size(), 6U) << "both samples with number 3 are kept";
  EXPECT_EQ(expected["calibrations"].size(), 3U);
  EXPECT_EQ(expected["observations"].size(), 2U) << "the restored one is used";
  EXPECT_EQ(expected["removals"].size(), 3U);
}

TEST_F(MergeTest, DoesNotDependOnHowTheMembersAreGrouped) {
  Store left = open("left.db");
  left.merge(open("a.db"));
  left.merge(open("b.db"));
  left.merge(open("c.db"));
  Store inner = open("inner.db");
  inner.merge(open("b.db"));
  inner.merge(open("c.db"));
  Store right = open("a.db");
  right.merge(inner);
  EXPECT_EQ(content_of(right), content_of(left));
}

TEST_F(MergeTest, AddsNothingTheSecondTime) {
  Store gathered = open("gathered.db");
  const MergeCounts first = gathered.merge(open("b.db"));
  EXPECT_EQ(first.runs, 1);
  EXPECT_EQ(first.samples, 3);
  EXPECT_EQ(first.observations, 2);
  EXPECT_EQ(first.calibrations, 1);
  EXPECT_EQ(first.baselines, 1);
  EXPECT_EQ(first.annotations, 1);
  EXPECT_EQ(first.removals, 2);
  const nlohmann::json content = content_of(gathered);
  EXPECT_EQ(gathered.merge(open("b.db")).total(), 0);
  EXPECT_EQ(content_of(gathered), content);
}

TEST_F(MergeTest, RefusesToMergeADatabaseIntoItself) {
  Store a = open("a.db");
  const nlohmann::json content = content_of(a);
  EXPECT_EQ(a.merge(open("a.db")).total(), 0);
  EXPECT_EQ(content_of(a), content);
}

TEST_F(MergeTest, RefusesADatabaseThatWasEditedByHand) {
  { Store b = open("b.db"); }
  SQLite::Database((directory_ / "b.db").string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE coefficients SET value = 0 WHERE position = 0");
  Store gathered = open("gathered.db");
  try {
    gathered.merge(open("b.db"));
    FAIL() << "merged";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("b.db was not merged: calibration "));
  }
  EXPECT_TRUE(content_of(gathered).is_null());
}

}  // namespace
}  // namespace memfathom
