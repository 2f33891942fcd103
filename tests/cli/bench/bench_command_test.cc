// `memfathom bench`, through the real binary; many runs at once in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/bench/run.h"
#include "cli/calibrate/estimator_runner.h"
#include "core/error.h"
#include "profiler/protocol.h"
#include "profiler/regression/compare.h"
#include "tests/cli/binary.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class BenchCommandTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), "bench");
    words.insert(words.end(), {"--db", path("bench.db"), "--quiet"});
    return run_binary(words);
  }
  // A run of a virtual GPU into a file; `plant` may be empty.
  std::string gpu(const std::string& file, const std::string& plant,
                  const std::string& filter = "") const {
    std::vector<std::string> words{"run",           "--device", "virtual:GPU", "--out", path(file),
                                   "--repetitions", "1"};
    if (!plant.empty()) words.insert(words.end(), {"--plant", plant, "--seed", "7"});
    if (!filter.empty()) words.insert(words.end(), {"--filter", filter});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return path(file);
  }
  // The components of what is not the same, each once; expects exit code 1.
  std::set<std::string> blamed(const std::string& base, const std::string& now) const {
    const Outcome outcome = run({"compare", base, now, "--format", "json"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    std::set<std::string> components;
    const json answer = json::parse(outcome.out);
    for (const json& benchmark : answer.at("benchmarks")) {
      if (benchmark.at("verdict") == "same") continue;
      EXPECT_EQ(benchmark.at("verdict"), "worse") << benchmark.dump();
      components.insert(benchmark.at("component").get<std::string>());
    }
    return components;
  }

  TemporaryDirectory directory_;
};

TEST_F(BenchCommandTest, ReportsAPlantedContextChangeOnceAndNothingElse) {
  const std::string base = gpu("base.json", "");
  const std::string now = gpu("now.json", "context=300MiB");
  EXPECT_THAT(blamed(base, now), ElementsAre("context"));
  const Outcome text = run({"compare", base, now});
  EXPECT_THAT(text.out,
              StartsWith("worse: of 74 benchmarks 1 worse (1 failing, 0 warnings), 73 same\n"));
  EXPECT_THAT(text.out, HasSubstr("\n  context: "));
  EXPECT_THAT(text.out, HasSubstr("; driver simulated → simulated+context=300MiB\n"));
}

TEST_F(BenchCommandTest, ReportsPlantedWorkspacesInEveryBenchmarkThatUsesThem) {
  const std::string base = gpu("base.json", "");
  const std::string now = gpu("now.json", "workspace=1.5");
  EXPECT_THAT(blamed(base, now), ElementsAre("workspace_cudnn", "workspace_cufft"));
  const json answer = json::parse(run({"compare", base, now, "--format", "json"}).out);
  int asking = 0;
  int found = 0;
  for (const json& benchmark : answer.at("benchmarks")) {
    const std::string name = benchmark.at("name");
    const bool asks =
        name.find("conv") != std::string::npos || name.find("fno") != std::string::npos;
    const bool is_worse = benchmark.at("verdict") == "worse";
    EXPECT_LE(is_worse, asks) << name;
    asking += asks ? 1 : 0;
    found += asks && is_worse ? 1 : 0;
  }
  EXPECT_EQ(asking, 22);
  EXPECT_GE(found, 20) << "half as much again of next to nothing may be less than a page";
}

TEST_F(BenchCommandTest, AttributesPlantedSlackToTheAllocator) {
  const std::string base = gpu("base.json", "", "layer/.*/fp32");
  EXPECT_THAT(blamed(base, gpu("now.json", "slack=256MiB", "layer/.*/fp32")),
              ElementsAre("allocator_slack"));
}

// Runs the suite in this process on a virtual GPU with `plant` and `seed`.
class ManyRuns {
 public:
  explicit ManyRuns(std::string folder) : folder_(std::move(folder)) {}

  BenchFile of(const std::string& gpu, const std::string& plant, int seed) {
    BenchRunOptions options;
    options.device = "virtual:" + gpu;
    options.plant = plant;
    options.seed = seed;
    options.filter = "startup|/fp32";
    options.out = folder_ + "/now.json";
    run_device_suite(
        options,
        [&](const ProbeRequest& request) {
          ProbeOutcome outcome;
          outcome.reply = measure(request, runner_);
          return outcome;
        },
        context_);
    return read_bench_file(options.out);
  }

 private:
  std::string folder_;
  std::ostringstream silence_;
  Context context_{.out = silence_, .err = silence_, .db = std::nullopt, .quiet = true};
  EstimatorRunner runner_;
};

std::set<std::string> components_worse(const BenchComparison& comparison) {
  std::set<std::string> components;
  for (const ComparedBenchmark& b : comparison.benchmarks) {
    if (b.verdict == BenchVerdict::kSame) continue;
    EXPECT_EQ(b.verdict, BenchVerdict::kWorse) << b.name << ": " << b.reason;
    components.insert(b.component);
  }
  return components;
}

// GPUs with different constants, workspaces and noise, which were not used to design the rules.
TEST_F(BenchCommandTest, FindsOnlyPlantedChangesOnTenOtherGpus) {
  ManyRuns runs(directory_.path().string());
  for (int i = 0; i < 10; ++i) {
    const std::string gpu = "another-" + std::to_string(i);
    const BenchFile base = runs.of(gpu, "", 2 * i);
    const auto found = [&](const std::string& plant) {
      return components_worse(compare(base, runs.of(gpu, plant, 2 * i + 1)));
    };
    EXPECT_THAT(found("context=300MiB"), ElementsAre("context")) << gpu;
    // An FNO block uses both libraries; the report names the one that grew more.
    EXPECT_THAT(found("workspace=1.5"), AnyOf(ElementsAre("workspace_cudnn"),
                                              ElementsAre("workspace_cudnn", "workspace_cufft")))
        << gpu;
    EXPECT_THAT(found("slack=256MiB"), ElementsAre("allocator_slack")) << gpu;
  }
}

TEST_F(BenchCommandTest, AHundredRunsWithoutAChangeGiveNoFalseAlarm) {
  ManyRuns runs(directory_.path().string());
  bool readings_scatter = false;
  for (const std::string gpu : {"steady", "calm", "even", "level"}) {
    const BenchFile base = runs.of(gpu, "", 0);
    for (int run_number = 1; run_number <= 25; ++run_number) {
      const BenchFile now = runs.of(gpu, "", run_number);
      const BenchComparison comparison = compare(base, now);
      EXPECT_EQ(comparison.count(BenchVerdict::kSame),
                static_cast<int>(comparison.benchmarks.size()))
          << gpu << ", run " << run_number << ": " << comparison.benchmarks.front().name << ": "
          << comparison.benchmarks.front().reason;
      for (std::size_t i = 0; i < now.rows.size(); ++i)
        readings_scatter |= now.rows[i].counters != base.rows[i].counters;
    }
  }
  EXPECT_TRUE(readings_scatter) << "the runs are equal to the byte: the test shows nothing";
}

TEST_F(BenchCommandTest, RepeatsSamplesDisturbedByAnotherProcess) {
  std::ostringstream silence;
  const Context context{.out = silence, .err = silence, .db = std::nullopt, .quiet = true};
  const EstimatorRunner runner;
  BenchRunOptions options;
  options.device = "virtual:restless";
  options.filter = "startup";
  options.repetitions = 1;
  options.out = directory_.path().string() + "/now.json";
  std::map<std::string, int> asked;
  run_device_suite(
      options,
      [&](const ProbeRequest& request) {
        ProbeOutcome outcome;
        outcome.reply = measure(request, runner);
        if (asked[request.workload]++ == 0 && !request.workload.empty()) {
          outcome.status = SampleStatus::kDisturbed;
          outcome.note = "process 7 started using the device";
        }
        return outcome;
      },
      context);
  const BenchFile file = read_bench_file(options.out);
  ASSERT_FALSE(file.rows.empty());
  for (const BenchRow& row : file.rows) {
    EXPECT_EQ(row.error, "") << row.name;
    EXPECT_EQ(asked[row.name], 2) << row.name;
  }
}

TEST_F(BenchCommandTest, ResumesAnInterruptedRun) {
  const std::string whole = gpu("whole.json", "", "startup");
  // Simulates an interruption after the first two rows.
  json partial = json::parse(read(whole));
  partial["benchmarks"].erase(2);
  partial["benchmarks"].erase(2);
  partial["benchmarks"][0]["context_bytes"] = 12345;
  std::ofstream(path("again.json.partial")) << partial.dump();
  const json again = json::parse(read(gpu("again.json", "", "startup")));
  EXPECT_EQ(again.at("benchmarks").size(), 4);
  EXPECT_EQ(again.at("benchmarks")[0].at("context_bytes"), 12345) << "the row was taken again";
  EXPECT_FALSE(std::filesystem::exists(path("again.json.partial")));
  // Rows of another run are not reused.
  std::ofstream(path("other.json.partial")) << partial.dump();
  EXPECT_NE(
      json::parse(read(gpu("other.json", "", "startup/c"))).at("benchmarks")[0].at("context_bytes"),
      12345);
}

TEST_F(BenchCommandTest, ThresholdsDecideTheExitCode) {
  const std::string base = gpu("base.json", "", "startup/context");
  const std::string now = gpu("now.json", "context=40MiB", "startup/context");
  EXPECT_EQ(run({"compare", base, now}).exit_code, 1);
  EXPECT_EQ(run({"compare", base, now, "--fail-threshold", "50%"}).exit_code, 0);
  EXPECT_EQ(run({"compare", base, now, "--fail-threshold", "50%,16MiB"}).exit_code, 1);
  EXPECT_EQ(run({"compare", base, now, "--fail-threshold", "much"}).exit_code, 2);
  EXPECT_EQ(run({"compare", now, base}).exit_code, 0);
  EXPECT_THAT(run({"compare", now, base}).out, StartsWith("better: "));
}

TEST_F(BenchCommandTest, ReportsAmbiguityAsUndecidedOnlyWithStrict) {
  const std::string base = gpu("base.json", "", "startup");
  const std::string now = gpu("now.json", "", "startup/context");
  EXPECT_EQ(run({"compare", base, now}).exit_code, 0);
  EXPECT_EQ(run({"compare", base, now, "--strict"}).exit_code, 3);
  EXPECT_THAT(run({"compare", base, now}).out, StartsWith("undecided: "));
}

TEST_F(BenchCommandTest, StoresBaselinesByNameWithRemarks) {
  const std::string base = gpu("base.json", "", "startup");
  ASSERT_EQ(run({"baseline", "save", "node7", base}).exit_code, 0);
  ASSERT_EQ(run({"baseline", "annotate", "node7", "before the new driver"}).exit_code, 0);
  EXPECT_THAT(run({"baseline", "list"}).out, HasSubstr("before the new driver"));
  EXPECT_EQ(run({"baseline", "show", "node7"}).out, read(base));
  EXPECT_EQ(run({"compare", "node7", base, "--strict"}).exit_code, 0);
  const json listed = json::parse(run({"baseline", "list", "--format", "json"}).out);
  EXPECT_EQ(listed.at("baselines")[0].at("name"), "node7");
  EXPECT_EQ(run({"baseline", "show", "node8"}).exit_code, 2);
}

TEST_F(BenchCommandTest, ListsJobsThatNoLongerFitWithTheNewCalibration) {
  const std::string file = gpu("base.json", "", "startup");
  std::filesystem::create_directory(path("jobs"));
  const auto judged = [&](const std::string& memory, int exit_code) {
    std::ofstream(path("jobs/mlp.json"))
        << R"({"model": {"input": {"shape": [256]}, "layers": [{"type": "linear", "in": 256, "out": 256}],)"
        << R"( "loss": "mean"}, "training": {"batch_size": 4}, "target": {"memory": ")" << memory
        << R"("}})";
    const Outcome outcome = run({"compare", file, file, "--jobs", path("jobs"), "--before", "none",
                                 "--after", "default/pytorch", "--format", "json"});
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    return json::parse(outcome.out).at("jobs").at(0);
  };
  const json roomy = judged("80GiB", 0);
  EXPECT_EQ(roomy.at("flips"), false);
  const auto before = roomy.at("before_bytes").get<std::int64_t>();
  const auto after = roomy.at("after_bytes").get<std::int64_t>();
  ASSERT_LT(before, after);  // a calibration includes the context
  constexpr std::int64_t kDriversPart = std::int64_t{330} << 20;  // not available to any job
  EXPECT_EQ(judged(std::to_string((before + after) / 2 + kDriversPart) + "B", 1).at("flips"), true);
  EXPECT_EQ(run({"compare", file, file, "--jobs", path("jobs")}).exit_code, 2);
}

TEST_F(BenchCommandTest, ReadsJobsAndCalibrationIdsAsOtherCommandsDo) {
  const std::string file = gpu("base.json", "", "startup");
  std::filesystem::create_directory(path("jobs"));
  std::ofstream(path("jobs/hub.json"))
      << R"({"model": {"preset": "openai-community/gpt2"}, "training": {"sequence_length": 8}})";
  const json listed = json::parse(
      run_binary({"--db", path("none.db"), "--format", "json", "calibrations", "list"}).out);
  const std::string id = listed.at("calibrations")[0].at("id").get<std::string>().substr(0, 12);
  const Outcome outcome = run({"compare", file, file, "--jobs", path("jobs"), "--before", id,
                               "--after", id, "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json job = json::parse(outcome.out).at("jobs").at(0);
  EXPECT_FALSE(job.contains("error")) << job;
  const Outcome estimated = run_binary({"--db", path("none.db"), "--format", "json", "estimate",
                                        path("jobs/hub.json"), "--calibration", id});
  EXPECT_EQ(job.at("after_bytes"), json::parse(estimated.out).at("totals").at("device_peak_bytes"));
}

TEST_F(BenchCommandTest, RefusesAMissingCalibrationBeforeAnyJob) {
  const std::string file = gpu("base.json", "", "startup");
  std::filesystem::create_directory(path("jobs"));
  std::ofstream(path("jobs/mlp.json"))
      << R"({"model": {"preset": "gpt2"}, "training": {"sequence_length": 8}})";
  const Outcome outcome = run(
      {"compare", file, file, "--jobs", path("jobs"), "--before", "none", "--after", "no/such"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("\"no/such\""));
}

TEST_F(BenchCommandTest, ComparisonReportIsASelfContainedPage) {
  const auto file = [&](const char* name, const char* cudnn, int bytes) {
    std::ofstream(path(name)) << R"({"context": {"gpu": "NVIDIA H100 <b>", "cudnn": ")" << cudnn
                              << R"("}, "benchmarks": [{"name": "conv/<script>", "label": "a",)"
                              << R"( "real_time": 1, "cpu_time": 1, "time_unit": "ms",)"
                              << R"( "time_of": "question", "workspace_bytes": )" << bytes << "}]}";
    return path(name);
  };
  const std::string base = file("a.json", "9.19.0", 25943040);
  const std::string now = file("b.json", "9.22.0", 65179648);
  const auto report = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"report", "bench"});
    words.insert(words.end(), {"--db", path("bench.db"), "--quiet"});
    return run_binary(words);
  };
  const Outcome worse = report({base, now});
  EXPECT_EQ(worse.exit_code, 1) << worse.err;
  EXPECT_THAT(worse.out, StartsWith("<!DOCTYPE html>"));
  for (const char* part :
       {"worse: of 1 benchmarks 1 worse", "<svg ", "24.7 → 62.2 MiB", "cuDNN 9.19.0 → 9.22.0",
        "conv/&lt;script&gt;", "NVIDIA H100 &lt;b&gt;", "Sources", "</html>\n"})
    EXPECT_THAT(worse.out, HasSubstr(part));
  for (const char* part : {"<script", "http://", "https://", "src="})
    EXPECT_EQ(worse.out.find(part), std::string::npos) << part;
  const Outcome same = report({base, base});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("Nothing changed."));
  EXPECT_THAT(report({base, base, "--all"}).out, HasSubstr("<td data-title=\"verdict\">same</td>"));
  EXPECT_EQ(report({base}).exit_code, 2);
  EXPECT_EQ(report({base, path("none.json")}).exit_code, 2);
  // The page marks a simulated GPU as not measured.
  const std::string simulated = gpu("GPU.json", "", "startup");
  EXPECT_THAT(report({simulated, simulated}).out, HasSubstr("simulated, not measured"));
}

TEST_F(BenchCommandTest, ReportsBadUsageInOneSentence) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {},
           {"rum"},
           {"run"},
           {"run", "--device", "virtual:x"},
           {"run", "--device", "tpu:0", "--out", path("x")},
           {"run", "--device", "cudnn:sm_10", "--out", path("x")},
           {"run", "--device", "virtual:x", "--out", path("x"), "--filter", "("},
           {"run", "--device", "virtual:x", "--out", path("x"), "--filter", "no such name"},
           {"run", "--device", "cudnn:sm_90", "--out", path("x"), "--filter", "no such name"},
           {"run", "--device", "cudnn:sm_90", "--out", path("x"), "--cudnn-library", path("")},
           {"run", "--device", "cudnn:sm_90", "--out", path("x"), "--libcuda", path("libcuda.so")},
           {"run", "--device", "virtual:x", "--out", path("x"), "--cudnn-library", path("")},
           {"run", "--device", "virtual:x", "--out", path("x"), "--repetitions", "0"},
           {"run", "--device", "cpu", "--plant", "context=1MiB", "--out", path("x")},
           {"compare", path("none.json"), path("none.json")},
           {"compare", "only-one"},
           {"baseline", "keep", "x"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 2) << ::testing::PrintToString(words) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("memfathom: "));
  }
}

TEST_F(BenchCommandTest, PrintsTheExpectedText) {
  const auto file = [&](const char* name, const char* cudnn, int bytes) {
    std::ofstream(path(name))
        << R"({"context": {"gpu": "NVIDIA H100", "cudnn": ")" << cudnn
        << R"("}, "benchmarks": [{"name": "conv/a", "label": "forward a",)"
        << R"( "real_time": 1, "cpu_time": 1, "time_unit": "ms", "time_of": "question",)"
        << R"( "workspace_bytes": )" << bytes
        << R"(, "operations": [{"component": "workspace_cudnn", "operation": "forward a",)"
        << R"( "bytes": )" << bytes << R"(}]}]})";
    return path(name);
  };
  const std::string base = file("a.json", "9.19.0", 25943040);
  const std::string now = file("b.json", "9.22.0", 65179648);
  EXPECT_EQ(run({"compare", base, now, "--format", "markdown"}).out,
            "**worse: of 1 benchmarks 1 worse (1 failing, 0 warnings)**\n"
            "\n"
            "- cuDNN workspace, forward a: 24.7 → 62.2 MiB; cuDNN 9.19.0 → 9.22.0\n"
            "\n"
            "stack: cuDNN 9.19.0 → 9.22.0\n"
            "\n"
            "| verdict | benchmark | component | change | reason |\n"
            "|---|---|---|---:|---|\n"
            "| worse, fails | conv/a | workspace_cudnn | 24.7 → 62.2 MiB | workspace 24.7 → 62.2 "
            "MiB (+151.2 %) in 1 "
            "of 1 processes |\n");
}

}  // namespace
}  // namespace memfathom
