// `memfathom fit` through the real binary: missing model terms, uninformative data, plots.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/calibrate/estimator_runner.h"
#include "cli/calibrate/fit_rows.h"
#include "cli/calibrate/profiling.h"
#include "core/error.h"
#include "estimator/run/dry_run.h"
#include "tests/cli/profiling_fixture.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;

class FitCommandTest : public ProfilingFixture {
 protected:
  // Copies the samples of a calibrated virtual GPU, each enlarged by `extra` of its dry run.
  std::string with_extra(const std::function<std::int64_t(const DryRun&)>& extra) {
    const Outcome calibrated =
        run({"calibrate", "--device", "virtual:plain", "--plan", "standard", "--quiet"});
    EXPECT_EQ(calibrated.exit_code, 0) << calibrated.err;
    const Store original = Store::open(database(), Store::Mode::kReadOnly);
    std::string changed = folder_ + "/changed.db";
    Store store = Store::open(changed, Store::Mode::kReadWrite);
    const std::string run_id = store.begin_run(original.runs().front());
    for (const auto& [workload, sample] : samples()) {
      Sample larger = sample;
      if (larger.device_peak) *larger.device_peak += Bytes{extra(run_dry(job_of(sample.job), {}))};
      store.insert_sample(run_id, larger);
    }
    store.finish_run(run_id, "2026-11-16T00:00:00Z");
    return changed;
  }
  double context_error(const json& fitted) const {
    for (const json& c : fitted.at("calibration").at("coefficients")) {
      if (c.at("name") == "context") return c.at("standard_error");
    }
    return -1;
  }
  json fitted(const std::string& database) {
    return json::parse(run_binary({"--db", database, "fit", "--device", "virtual:plain", "--format",
                                   "json", "--quiet"})
                           .out);
  }
  std::string observations(const std::string& name, int count,
                           const std::function<std::string(int)>& bytes,
                           const std::function<int(int)>& batch) {
    std::string path = folder_ + "/" + name + ".jsonl";
    std::ofstream file(path);
    for (int i = 0; i < count; ++i) {
      file << fmt::format(
          R"({{"id":"{0}","group":"g","job":{{"model":{{"input":{{"shape":[1024]}},"layers":[{{"type":"linear",)"
          R"("in":1024,"out":4096}},{{"type":"relu"}}],"loss":"mean"}},"training":{{"batch_size":{1}}},)"
          R"("target":{{"gpu":"a100-40gb"}}}},"measured":{{"metric":"device","bytes":{2}}}}})"
          "\n",
          i, batch(i), bytes(i));
    }
    return path;
  }
  // Observes and fits; returns the reason for the refusal.
  std::string refusal_of(const std::string& file) {
    EXPECT_EQ(run({"observe", file}).exit_code, 0);
    const Outcome outcome = run({"fit", "--observations", "a100-40gb", "--format", "json"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    return json::parse(outcome.out).at("calibration").at("refusal");
  }
};

TEST_F(FitCommandTest, DiagnosesAConstantPerLayerAndWidensTheErrors) {
  const std::string changed = with_extra([](const DryRun& dry) { return 16 * kMiB * dry.layers; });
  const Outcome outcome = run_binary({"--db", changed, "fit", "--device", "virtual:plain"});
  EXPECT_THAT(outcome.out, HasSubstr("a term is missing"));
  EXPECT_THAT(outcome.out, HasSubstr("MiB per layer"));
  const json lacking = fitted(changed);
  EXPECT_TRUE(!lacking.at("usable") ||
              context_error(lacking) > 1.5 * context_error(fitted(database())));
}

TEST_F(FitCommandTest, DiagnosesAProportionalLeakAndWidensTheErrors) {
  const std::string changed =
      with_extra([](const DryRun& dry) { return dry.reserved_peak.count() / 10; });
  const Outcome outcome = run_binary({"--db", changed, "fit", "--device", "virtual:plain"});
  EXPECT_THAT(outcome.out, HasSubstr("a term is missing"));
  const json lacking = fitted(changed);
  EXPECT_TRUE(!lacking.at("usable") ||
              context_error(lacking) > 1.5 * context_error(fitted(database())));
}

TEST_F(FitCommandTest, PlotsTheResiduals) {
  ASSERT_EQ(run({"calibrate", "--device", "virtual:plain", "--quiet"}).exit_code, 0);
  const std::string picture = folder_ + "/residuals.svg";
  ASSERT_EQ(run({"fit", "--device", "virtual:plain", "--plot", picture}).exit_code, 0);
  std::ifstream file(picture);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(svg, HasSubstr("<svg xmlns="));
  EXPECT_THAT(svg, HasSubstr("virtual:plain"));
}

TEST_F(FitCommandTest, RefusesObservationsWithoutInformation) {
  const auto two_gib = [](int i) { return std::to_string(2147483648 + std::int64_t{4096} * i); };
  const auto growing = [](int i) { return 1000 * (i + 1); };
  EXPECT_THAT(refusal_of(observations("one", 1, two_gib, growing)), HasSubstr("too few"));
}

TEST_F(FitCommandTest, RefusesObservationsOfOneJob) {
  const auto bytes = [](int i) { return std::to_string(2147483648 + std::int64_t{4096} * i); };
  EXPECT_THAT(refusal_of(observations("equal", 20, bytes, [](int) { return 8; })),
              HasSubstr("1 distinct job size"));
}

TEST_F(FitCommandTest, RefusesObservationsLargerThanAnyGpu) {
  const auto bytes = [](int i) {
    return std::to_string(i == 3 ? 1'000'000'000'000'000 : 2147483648);
  };
  const std::string file = observations("huge", 20, bytes, [](int i) { return 1000 * (i + 1); });
  const Outcome outcome = run({"observe", file});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("huge.jsonl:4"));
  const Outcome fitted = run({"fit", "--observations", "a100-40gb", "--format", "json"});
  EXPECT_THAT(fitted.out, HasSubstr("0 measured device totals")) << "nothing was stored";
}

TEST_F(FitCommandTest, RefusesNegativeAndNonNumericObservations) {
  for (const char* bytes : {"NaN", "-5", "1e400", "\"many\""}) {
    const Outcome outcome = run(
        {"observe", observations(
                        "bad", 3, [&](int) { return std::string(bytes); }, [](int) { return 4; })});
    EXPECT_EQ(outcome.exit_code, 2) << bytes << outcome.out;
  }
}

// After all the measuring: GPUs whose architecture no description names take the nearest.
TEST_F(FitCommandTest, APyTorchSampleOfAnyArchitectureCanBeReplayed) {
  for (const char* architecture : {"sm_70", "sm_87", "sm_103", "sm_110", "sm_121"}) {
    Environment environment;
    environment.gpu = "NVIDIA Something";
    environment.architecture = architecture;
    environment.memory_total = Bytes{64LL << 30};
    environment.framework = "pytorch";
    environment.framework_version = "2.12.0";
    Store store =
        Store::open(fmt::format("{}/{}.db", folder_, architecture), Store::Mode::kReadWrite);
    memfathom::Run started;
    started.environment = environment;
    started.started = "2026-11-18T10:00:00Z";
    Sample sample;
    sample.workload = "conv";
    sample.family = "conv";
    sample.job =
        R"({"model":{"input":{"shape":[4,8,8]},"layers":[{"type":"conv2d","in":4,"out":4,"kernel":3}],)"
        R"("loss":"mean"},"training":{"batch_size":2}})";
    sample.status = SampleStatus::kOk;
    sample.device_peak = Bytes{600 * kMiB};
    store.insert_sample(store.begin_run(started), sample);
    const FitInput input = fit_input(store, environment, fit_options(environment));
    EXPECT_EQ(input.rows.size(), 1U) << architecture;
    EXPECT_THAT(input.notes, testing::Contains(HasSubstr("using those of"))) << architecture;
  }
}

// A fit asks the cuDNN that PyTorch loaded, which the run recorded, and says where it cannot.
TEST_F(FitCommandTest, AsksTheCudnnThatPyTorchLoaded) {
  Environment environment;
  environment.gpu = "NVIDIA Something";
  environment.architecture = "sm_80";
  environment.memory_total = Bytes{64LL << 30};
  environment.framework = "pytorch";
  environment.framework_version = "2.12.0";
  Store store = Store::open(database(), Store::Mode::kReadWrite);
  const auto notes_after = [&](const char* started, const std::string& directory) {
    memfathom::Run next;
    next.environment = environment;
    next.started = started;
    next.cudnn_directory = directory;
    Sample sample;
    sample.workload = "linear";
    sample.job =
        R"({"model":{"input":{"shape":[8]},"layers":[{"type":"linear","in":8,"out":8}],"loss":"mean"}})";
    sample.device_peak = Bytes{600 * kMiB};
    store.insert_sample(store.begin_run(next), sample);
    return fit_input(store, environment, fit_options(environment)).notes;
  };
  EXPECT_THAT(notes_after("2026-11-18T10:00:00Z", ""),
              testing::Contains(HasSubstr("do not say which cuDNN PyTorch loaded")));
  EXPECT_THAT(notes_after("2026-11-18T11:00:00Z", "/nonexistent/cudnn"),
              testing::Contains(HasSubstr("(/nonexistent/cudnn) is not on this machine")));
  EXPECT_THAT(notes_after("2026-11-18T12:00:00Z", folder_),
              testing::Not(testing::Contains(HasSubstr("PyTorch loaded"))))
      << "the newest run's is there";
  EXPECT_EQ(store.runs().back().cudnn_directory, folder_);
  EXPECT_THAT(store.check(), testing::IsEmpty());
}

TEST(ProfilingTest, AColdImportOfTorchMayTakeMinutes) {
  EXPECT_EQ(ask_limit(Framework::kOwn, std::nullopt), std::chrono::seconds(60));
  EXPECT_EQ(ask_limit(Framework::kPytorch, std::nullopt), std::chrono::seconds(600));
  EXPECT_EQ(ask_limit(Framework::kPytorch, 900), std::chrono::seconds(900));
  EXPECT_EQ(ask_limit(Framework::kOwn, 1), std::chrono::seconds(60));
}

// Our own layers run fused attention on cuDNN, so its first use belongs to their design.
TEST(FitOptionsTest, OurOwnAttentionLoadsCudnnFromAmpereOn) {
  Environment environment;
  environment.framework = "memfathom";
  environment.gpu = "NVIDIA A100-SXM4-40GB";
  environment.architecture = "sm_80";
  EXPECT_TRUE(policy_of(environment).prefers_cudnn_attention);
  environment.architecture = "sm_75";
  EXPECT_FALSE(policy_of(environment).prefers_cudnn_attention);
  environment.architecture = "sm_80";
  environment.framework = "pytorch";
  environment.framework_version = "2.15.0";
  EXPECT_FALSE(policy_of(environment).prefers_cudnn_attention) << "PyTorch takes flash attention";
  environment.architecture = "sm_90";
  EXPECT_TRUE(policy_of(environment).prefers_cudnn_attention);
}

TEST(FitOptionsTest, RefuseNonCpuArchitectures) {
  Environment environment;
  environment.framework = "memfathom";
  environment.gpu = "AMD EPYC 7B13, 2 cores (cpu)";
  environment.architecture = "x86_64";
  EXPECT_EQ(fit_options(environment).name, "cpu/memfathom");
  EXPECT_EQ(fit_options(environment).quantum, Bytes{4096});

  environment.gpu = "AMD Instinct MI250X";
  environment.architecture = "gfx90a";
  EXPECT_THROW(fit_options(environment), Error);
  EXPECT_THROW(policy_of(environment), Error);
}

}  // namespace
}  // namespace memfathom
