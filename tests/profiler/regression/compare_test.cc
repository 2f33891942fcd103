#include "profiler/regression/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;
using enum BenchVerdict;

using Counters = std::map<std::string, Bytes>;

// A file of one GPU, a row per process.
class FileMaker {
 public:
  FileMaker() {
    file_.environment.gpu = "NVIDIA H100";
    file_.environment.cudnn = "9.19.0";
    file_.environment.driver = "580";
  }
  FileMaker& with_cudnn(const std::string& version) {
    file_.environment.cudnn = version;
    return *this;
  }
  FileMaker& with_driver(const std::string& version) {
    file_.environment.driver = version;
    return *this;
  }
  FileMaker& on(const std::string& gpu) {
    file_.environment.gpu = gpu;
    return *this;
  }
  FileMaker& add(const std::string& name, const std::vector<Counters>& processes) {
    for (const Counters& counters : processes) {
      BenchRow row;
      row.name = name;
      row.counters = counters;
      row.time_of = "process";
      file_.rows.push_back(row);
    }
    return *this;
  }
  FileMaker& add_workspace(const std::string& label, Bytes bytes) {
    add("conv/" + label, std::vector<Counters>(3, {{"workspace_bytes", bytes}}));
    for (std::size_t i = file_.rows.size() - 3; i < file_.rows.size(); ++i) {
      file_.rows[i].label = label;
      file_.rows[i].operations = {{"workspace_cudnn", label, bytes}};
    }
    return *this;
  }
  FileMaker& add_times(const std::string& name, const std::vector<double>& seconds) {
    for (const double s : seconds) {
      BenchRow row;
      row.name = name;
      row.seconds = s;
      row.time_of = "step";
      file_.rows.push_back(row);
    }
    return *this;
  }
  FileMaker& add_failure(const std::string& name, const std::string& why) {
    BenchRow row;
    row.name = name;
    row.error = why;
    file_.rows.push_back(row);
    return *this;
  }
  operator BenchFile() const { return file_; }  // NOLINT: that is what it makes

 private:
  BenchFile file_;
};

std::vector<Counters> reserved(const std::vector<Bytes>& values) {
  std::vector<Counters> processes;
  for (const Bytes value : values) processes.push_back({{"reserved_peak_bytes", value}});
  return processes;
}

ComparedBenchmark only(const BenchFile& base, const BenchFile& now,
                       const CompareOptions& options = {}) {
  const BenchComparison comparison = compare(base, now, options);
  EXPECT_EQ(comparison.benchmarks.size(), 1);
  return comparison.benchmarks.front();
}

ComparedBenchmark reserved_change(const std::vector<Bytes>& before, const std::vector<Bytes>& after,
                                  const CompareOptions& options = {}) {
  return only(FileMaker().add("a", reserved(before)), FileMaker().add("a", reserved(after)),
              options);
}

TEST(CompareTest, AChangeIsMoreThanAPageAndMoreThanHalfAPercent) {
  EXPECT_EQ(reserved_change({100_MiB}, {102_MiB}).verdict, kSame);
  EXPECT_EQ(reserved_change({100_MiB}, {102_MiB + 1_B}).verdict, kWorse);
  EXPECT_EQ(reserved_change({1000_MiB}, {1005_MiB}).verdict, kSame);
  EXPECT_EQ(reserved_change({1000_MiB}, {1006_MiB}).verdict, kWorse);
  EXPECT_EQ(reserved_change({1000_MiB}, {990_MiB}).verdict, kBetter);
  EXPECT_EQ(reserved_change({0_B}, {4_MiB}).verdict, kWorse);
}

TEST(CompareTest, AChangeMustRepeatInMostProcesses) {
  EXPECT_EQ(reserved_change({100_MiB, 100_MiB, 100_MiB}, {100_MiB, 140_MiB, 140_MiB}).verdict,
            kWorse);
  EXPECT_EQ(
      reserved_change(std::vector<Bytes>(5, 100_MiB), {100_MiB, 100_MiB, 100_MiB, 100_MiB, 140_MiB})
          .verdict,
      kSame);
}

TEST(CompareTest, ReportsADifferenceInSomeProcessesAsAmbiguous) {
  const ComparedBenchmark result =
      reserved_change({100_MiB, 100_MiB, 100_MiB}, {100_MiB, 100_MiB, 140_MiB});
  EXPECT_EQ(result.verdict, kAmbiguous);
  EXPECT_EQ(result.severity, Severity::kNone);
  EXPECT_THAT(result.reason, HasSubstr("1 of 3 processes only; run both again with --repetitions"));
  // The old processes disagree among themselves as much as the new ones with them.
  EXPECT_EQ(
      reserved_change({100_MiB, 140_MiB, 100_MiB, 140_MiB}, {140_MiB, 140_MiB, 140_MiB, 140_MiB})
          .verdict,
      kAmbiguous);
}

TEST(CompareTest, FailsAtFivePercentOr256MebibytesAndWarnsAtOne) {
  EXPECT_EQ(reserved_change({1000_MiB}, {1008_MiB}).severity, Severity::kNone);
  EXPECT_EQ(reserved_change({1000_MiB}, {1010_MiB}).severity, Severity::kWarning);
  EXPECT_EQ(reserved_change({1000_MiB}, {1050_MiB}).severity, Severity::kFailure);
  EXPECT_EQ(reserved_change({20_GiB}, {20_GiB + 256_MiB}).severity, Severity::kFailure);
  CompareOptions lenient;
  lenient.fail_share = 0.2;
  lenient.fail_bytes = 1_GiB;
  EXPECT_EQ(reserved_change({1000_MiB}, {1150_MiB}, lenient).severity, Severity::kWarning);
}

TEST(CompareTest, NamesTheOperationAndTheLibraryThatChanged) {
  const char* label = "data gradient 7x7/s2 3→64 @224² b32 fp16 NHWC";
  const BenchComparison comparison =
      compare(FileMaker().add_workspace("forward", 8_MiB).add_workspace(label, 25335_KiB),
              FileMaker()
                  .with_cudnn("9.22.0")
                  .with_driver("590")
                  .add_workspace("forward", 8_MiB)
                  .add_workspace(label, 63652_KiB));
  EXPECT_EQ(comparison.verdict(), "worse");
  ASSERT_EQ(comparison.count(kWorse), 1);
  EXPECT_EQ(comparison.count(kSame), 1);
  const ComparedBenchmark& worst = comparison.benchmarks.front();
  EXPECT_EQ(worst.component, "workspace_cudnn");
  EXPECT_EQ(worst.what, std::string("cuDNN workspace, ") + label);
  EXPECT_EQ(change_text(*worst.before, *worst.after), "24.7 → 62.2 MiB");
  EXPECT_EQ(worst.blamed, "cuDNN 9.19.0 → 9.22.0");
}

TEST(CompareTest, ReportsThatNoVersionChanged) {
  EXPECT_THAT(reserved_change({100_MiB}, {200_MiB}).blamed, HasSubstr("no version changed"));
}

Counters job(Bytes context, Bytes allocated, Bytes slack) {
  return {{"context_bytes", context},
          {"allocated_peak_bytes", allocated},
          {"reserved_peak_bytes", allocated + slack},
          {"device_peak_bytes", context + allocated + slack}};
}

TEST(CompareTest, ReportsALargerContextOnce) {
  const auto file = [](Bytes context, const char* driver) {
    return FileMaker()
        .with_driver(driver)
        .add("startup/context", {{{"context_bytes", context}}})
        .add("layer/a", {job(context, 100_MiB, 20_MiB)})
        .add("layer/b", {job(context, 900_MiB, 10_MiB)});
  };
  const BenchComparison comparison = compare(file(400_MiB, "580"), file(700_MiB, "590"));
  ASSERT_EQ(comparison.count(kWorse), 1);
  EXPECT_EQ(comparison.count(kSame), 2);
  EXPECT_EQ(comparison.benchmarks.front().name, "startup/context");
  EXPECT_EQ(comparison.benchmarks.front().component, "context");
  EXPECT_EQ(comparison.benchmarks.front().blamed, "driver 580 → 590");
}

TEST(CompareTest, ComparesTheContextPerBenchmarkWithoutAStartupBenchmark) {
  const ComparedBenchmark result =
      only(FileMaker().add("layer/a", {job(400_MiB, 100_MiB, 20_MiB)}),
           FileMaker().add("layer/a", {job(700_MiB, 100_MiB, 20_MiB)}));
  EXPECT_EQ(result.verdict, kWorse);
  EXPECT_EQ(result.component, "context");
}

TEST(CompareTest, DistinguishesSlackFromTensors) {
  const BenchFile base = FileMaker().add("layer/a", {job(400_MiB, 500_MiB, 20_MiB)});
  EXPECT_EQ(only(base, FileMaker().add("layer/a", {job(400_MiB, 500_MiB, 90_MiB)})).component,
            "allocator_slack");
  const ComparedBenchmark tensors =
      only(base, FileMaker().add("layer/a", {job(400_MiB, 570_MiB, 20_MiB)}));
  EXPECT_EQ(tensors.component, "unaccounted");
  EXPECT_THAT(tensors.what, HasSubstr("tensors"));
}

TEST(CompareTest, ReportsALargerWorkspaceEvenIfThePeakFell) {
  const auto file = [](Bytes workspace, Bytes peak) {
    BenchFile made = FileMaker().add_workspace("w", workspace);
    for (BenchRow& row : made.rows) row.counters["reserved_peak_bytes"] = peak;
    return made;
  };
  const ComparedBenchmark result = only(file(24_MiB, 538_MiB), file(36_MiB, 452_MiB));
  EXPECT_EQ(result.verdict, kWorse);
  EXPECT_EQ(result.component, "workspace_cudnn");
}

TEST(CompareTest, AttributesSlackFromAWorkspaceToTheWorkspace) {
  const auto file = [](Bytes workspace, Bytes reserved_peak) {
    BenchFile made = FileMaker().add_workspace("w", workspace);
    for (BenchRow& row : made.rows) {
      row.counters["allocated_peak_bytes"] = 500_MiB;
      row.counters["reserved_peak_bytes"] = reserved_peak;
    }
    return made;
  };
  EXPECT_EQ(only(file(90_MiB, 560_MiB), file(136_MiB, 672_MiB)).component, "workspace_cudnn");
}

TEST(CompareTest, NamesAContextAndAWorkspaceThatChangeTogether) {
  const auto file = [](Bytes context, Bytes workspace) {
    BenchFile made = FileMaker().add_workspace("w", workspace);
    for (BenchRow& row : made.rows) {
      row.counters["context_bytes"] = context;
      row.counters["allocated_peak_bytes"] = 500_MiB + workspace;
      row.counters["reserved_peak_bytes"] = 500_MiB + workspace;
      row.counters["device_peak_bytes"] = 500_MiB + workspace + context;
    }
    return made;
  };
  const ComparedBenchmark result = only(file(400_MiB, 90_MiB), file(700_MiB, 186_MiB));
  EXPECT_EQ(result.component, "context");
  EXPECT_THAT(result.what, HasSubstr("context"));
  EXPECT_THAT(result.what, HasSubstr("cuDNN workspace"));
  EXPECT_THAT(result.what, HasSubstr("90.0 → 186.0 MiB"));
}

TEST(CompareTest, ReportsMissingAndNewBenchmarks) {
  const BenchFile base =
      FileMaker().add("gone", reserved({1_MiB})).add("broken", reserved({1_MiB}));
  const BenchFile now =
      FileMaker().add_failure("broken", "out of memory").add("fresh", reserved({1_MiB}));
  const BenchComparison comparison = compare(base, now);
  EXPECT_EQ(comparison.count(kMissing), 2);
  EXPECT_EQ(comparison.count(kNew), 1);
  EXPECT_EQ(comparison.verdict(), "undecided");
  for (const ComparedBenchmark& b : comparison.benchmarks) {
    EXPECT_FALSE(b.reason.empty()) << b.name;
    if (b.name == "broken") {
      EXPECT_EQ(b.reason, "fails now: out of memory");
    }
  }
}

TEST(CompareTest, RefusesDifferentDevices) {
  EXPECT_THROW(compare(FileMaker().on("A"), FileMaker().on("B")), Error);
}

TEST(CompareTest, TimeNeedsSignificanceAndSizeAndOnlyWarns) {
  const std::vector<double> base{1.00, 1.01, 1.02, 1.03, 1.04, 1.05};
  const auto scaled = [&](double factor) {
    std::vector<double> times;
    for (const double t : base) times.push_back(t * factor + 1e-4);
    return times;
  };
  const auto judged = [&](const std::vector<double>& times, const CompareOptions& options = {}) {
    return only(FileMaker().add_times("t", base), FileMaker().add_times("t", times), options);
  };
  EXPECT_EQ(judged(scaled(1.3)).verdict, kWorse);
  EXPECT_EQ(judged(scaled(1.3)).severity, Severity::kWarning);
  EXPECT_EQ(judged(scaled(1.3)).component, "time");
  EXPECT_EQ(judged(scaled(0.7)).verdict, kBetter);
  EXPECT_EQ(judged(scaled(1.049)).verdict, kSame);
  EXPECT_EQ(judged({2, 2, 2}).verdict, kSame);  // too few to tell
  CompareOptions strict;
  strict.time_fails = true;
  EXPECT_EQ(judged(scaled(1.3), strict).severity, Severity::kFailure);
}

TEST(CompareTest, CorrectsForMultipleTests) {
  // 2/252 of chance is enough for one benchmark and not for ten.
  const std::vector<double> before{1, 2, 3, 4, 5};
  const std::vector<double> after{6, 7, 8, 9, 10};
  FileMaker base;
  FileMaker now;
  for (int i = 0; i < 10; ++i) {
    base.add_times("t" + std::to_string(i), before);
    now.add_times("t" + std::to_string(i), i == 0 ? after : before);
  }
  EXPECT_EQ(compare(base, now).count(kWorse), 0);
  EXPECT_EQ(
      compare(FileMaker().add_times("t", before), FileMaker().add_times("t", after)).count(kWorse),
      1);
}

TEST(CompareTest, ListsTheWorstFirst) {
  const BenchComparison comparison = compare(
      FileMaker().add_workspace("a", 10_MiB).add_workspace("b", 10_MiB).add_workspace("c", 90_MiB),
      FileMaker()
          .add_workspace("a", 10_MiB)
          .add_workspace("b", 20_MiB)
          .add_workspace("c", 130_MiB));
  EXPECT_EQ(comparison.benchmarks[0].label, "c");
  EXPECT_EQ(comparison.benchmarks[1].label, "b");
}

// What cuDNN 9.22 did: 1x1x1 kernels swapped layouts, a stem grew in most of its variants.
TEST(CompareTest, ListsNetGrowthBeforeLayoutChanges) {
  const BenchComparison comparison = compare(FileMaker()
                                                 .add_workspace("volume/forward/fp32/nchw", 0_MiB)
                                                 .add_workspace("volume/forward/fp32/nhwc", 128_MiB)
                                                 .add_workspace("stem/gradient/fp16/nhwc", 25_MiB)
                                                 .add_workspace("stem/gradient/bf16/nhwc", 24_MiB)
                                                 .add_workspace("stem/gradient/fp16/nchw", 74_MiB),
                                             FileMaker()
                                                 .add_workspace("volume/forward/fp32/nchw", 128_MiB)
                                                 .add_workspace("volume/forward/fp32/nhwc", 0_MiB)
                                                 .add_workspace("stem/gradient/fp16/nhwc", 62_MiB)
                                                 .add_workspace("stem/gradient/bf16/nhwc", 62_MiB)
                                                 .add_workspace("stem/gradient/fp16/nchw", 62_MiB));
  EXPECT_EQ(comparison.benchmarks[0].label, "stem/gradient/bf16/nhwc");
  EXPECT_EQ(comparison.benchmarks[1].label, "stem/gradient/fp16/nhwc");
  EXPECT_EQ(comparison.benchmarks[2].label, "volume/forward/fp32/nchw");
}

}  // namespace
}  // namespace memfathom
