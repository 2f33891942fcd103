// observe, monitor and check: store measurements of real runs in the database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/cli/profiling_fixture.h"

namespace memfathom {
namespace {

using namespace literals;
using nlohmann::json;
using ::testing::HasSubstr;

class ObservingCommandTest : public ProfilingFixture {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::vector<Observation> observations() const {
    return Store::open(database(), Store::Mode::kReadOnly).observations();
  }
  // A fake GPU whose processes are listed in a file.
  std::vector<std::string> pretend_card() const {
    return {"MEMFATHOM_NVML=" MEMFATHOM_FAKE_NVML, "MEMFATHOM_FAKE_NAME=NVIDIA H100 80GB HBM3",
            "MEMFATHOM_FAKE_PROCESSES=" + folder_ + "/processes", "XDG_CACHE_HOME=" + folder_};
  }
  // A command that reports its GPU memory and exits once that was read.
  std::string holds(int mib) const {
    const std::string path = folder_ + "/processes";
    return "echo $$ " + std::to_string(mib) + " 1 > " + path + "; rm -f " + path +
           ".read; while [ ! -e " + path + ".read ]; do :; done";
  }
  Outcome check(const std::string& command, const std::vector<std::string>& environment = {}) {
    return run({"check", "--model", "gpt2", "--sequence-length", "8", "--gpu", "h100-80gb", "--",
                "sh", "-c", command},
               environment);
  }
};

const char* const kJob =
    R"({"model": {"preset": "gpt2"}, "training": {"sequence_length": 64}, "target": {"gpu": "t4"}})";

TEST_F(ObservingCommandTest, ARemovedObservationIsListedAndCanBeTakenBack) {
  file("job.json", kJob);
  const std::string csv = file("runs.csv", "job,metric,bytes\njob.json,device,3000000000\n");
  ASSERT_EQ(run({"observe", csv}).exit_code, 0);
  const auto listed = [&] {
    return json::parse(run({"observations", "list", "--format", "json"}).out)["observations"];
  };
  ASSERT_EQ(listed().size(), 1U);
  EXPECT_EQ(listed()[0]["bytes"], 3'000'000'000);
  EXPECT_TRUE(listed()[0]["removed"].is_null());
  const std::string id = listed()[0]["id"];

  const Outcome removed =
      run({"observations", "remove", id.substr(0, 8), "--reason", "busy", "--format", "json"});
  ASSERT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_EQ(json::parse(removed.out)["rows"], json::array({{{"id", id}, {"changed", true}}}));
  EXPECT_TRUE(observations().empty());
  EXPECT_EQ(listed()[0]["removed"]["reason"], "busy");
  EXPECT_THAT(run({"observations", "list"}).out, HasSubstr("removed: busy"));
  const Outcome again = run({"observe", csv});
  EXPECT_EQ(again.out, "0 observations added, 1 already stored\n");
  EXPECT_THAT(again.err, HasSubstr("memfathom observations restore"));

  ASSERT_EQ(run({"observations", "restore", id}).exit_code, 0);
  EXPECT_EQ(observations().size(), 1U);
}

TEST_F(ObservingCommandTest, RemovesAllTheNamedRowsOrNone) {
  file("job.json", kJob);
  ASSERT_EQ(run({"observe", file("runs.csv", "job,metric,bytes\njob.json,device,3000000000\n")})
                .exit_code,
            0);
  const std::string id =
      json::parse(run({"observations", "list", "--format", "json"}).out)["observations"][0]["id"];
  const Outcome outcome = run({"observations", "remove", id, "0123456789"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no row has the id \"0123456789\""));
  EXPECT_EQ(observations().size(), 1U);
  EXPECT_EQ(run({"observations", "remove"}).exit_code, 2);
  EXPECT_EQ(run({"observations", "list", id}).exit_code, 2);
  EXPECT_THAT(run({"observations", "delete", id}).err, HasSubstr("unknown action"));
}

TEST_F(ObservingCommandTest, ReadsObservationsFromJsonLines) {
  file("job.json", kJob);
  const std::string lines =
      file("runs.jsonl",
           std::string(R"({"job": "job.json", "metric": "device", "bytes": 3000000000})") + "\n\n" +
               R"({"job": )" + kJob +
               R"(, "metric": "reserved", "fits": false, "gpu": "v100-16gb", "note": "x"})" + "\n" +
               R"({"id": "a", "job": )" + kJob +
               R"(, "measured": {"metric": "allocated", "bytes": 5}, "group": "g"})" + "\n");
  const Outcome outcome = run({"observe", lines, "--source", "us"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "3 observations added, 0 already stored\n");
  std::map<Metric, Observation> by_metric;
  for (const Observation& one : observations()) by_metric[one.metric] = one;
  EXPECT_EQ(by_metric[Metric::kDevice].gpu, "t4") << "the job's own target";
  EXPECT_EQ(by_metric[Metric::kDevice].bytes, Bytes{3000000000});
  EXPECT_EQ(by_metric[Metric::kReserved].fits, false);
  EXPECT_EQ(by_metric[Metric::kReserved].gpu, "v100-16gb");
  EXPECT_EQ(by_metric[Metric::kReserved].note, "x");
  EXPECT_EQ(by_metric[Metric::kAllocated].group, "g");
  EXPECT_EQ(by_metric[Metric::kAllocated].source, "us");
  EXPECT_EQ(run({"observe", lines, "--source", "us"}).out,
            "0 observations added, 3 already stored\n");
}

TEST_F(ObservingCommandTest, ReadsObservationsFromCsv) {
  file("job.json", kJob);
  const std::string table =
      file("runs.csv",
           "job,metric,bytes,fits,gpu,note\n"
           "job.json,device,3000000000,,a100-40gb,\"nvidia-smi, once a second\"\n"
           "\"{\"\"model\"\": {\"\"preset\"\": \"\"gpt2\"\"}}\",device,,true,t4,\n");
  const Outcome outcome = run({"observe", table});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Observation> found = observations();
  ASSERT_EQ(found.size(), 2U);
  const Observation& measured = found[0].bytes ? found[0] : found[1];
  EXPECT_EQ(measured.note, "nvidia-smi, once a second");
  EXPECT_EQ(measured.gpu, "a100-40gb");
}

TEST_F(ObservingCommandTest, ReadsJobsAsEstimateDoesAndStoresThemUnchanged) {
  std::filesystem::create_directory(folder_ + "/sub");
  file("sub/config.json",
       R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
           "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 100})");
  file("sub/job.yaml", "model: {config: config.json}\ntraining: {sequence_length: 8}\n");
  const std::string lines = file(
      "runs.jsonl",
      R"({"metric": "device", "bytes": 1, "job": {"model": {"preset": "openai-community/gpt2"}}})"
      "\n"
      R"({"metric": "device", "bytes": 2, "job": "sub/job.yaml"})"
      "\n");
  const Outcome outcome = run({"observe", lines, "--gpu", "t4"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const Observation& one : observations()) {
    const json model = json::parse(one.job)["model"];
    if (one.bytes == Bytes{1}) {
      EXPECT_EQ(model["preset"], "openai-community/gpt2");
    } else {
      EXPECT_EQ(model["config"],
                std::filesystem::weakly_canonical(folder_ + "/sub/config.json").string());
    }
  }
  EXPECT_EQ(observations().size(), 2U);
}

TEST_F(ObservingCommandTest, StoresNothingFromAFileWithABadLine) {
  const std::string good =
      std::string(R"({"metric": "device", "bytes": 1, "job": )") + kJob + "}\n";
  for (const auto& [bad, sentence] : std::vector<std::pair<std::string, std::string>>{
           {R"({"metric": "device", "bytes": 1})", "it must have a job"},
           {R"({"metric": "devise", "bytes": 1, "job": {}})", "allocated, reserved or device"},
           {R"({"metric": "device", "job": {"model": {"preset": "gpt2"}}})", "it must have bytes"},
           {R"({"metric": "device", "bytes": 1, "job": "none.yaml"})", "none.yaml"},
           {R"({"metric": "device", "byte": 1, "job": {}})", "byte"}}) {
    const Outcome outcome = run({"observe", file("runs.jsonl", good + bad + "\n")});
    EXPECT_EQ(outcome.exit_code, 2) << bad;
    EXPECT_THAT(outcome.err, HasSubstr(sentence));
    EXPECT_FALSE(std::filesystem::exists(database())) << bad;
  }
  const Outcome short_row = run({"observe", file("runs.csv", "job,metric\nx\n")});
  EXPECT_THAT(short_row.err, HasSubstr("runs.csv:2: 1 fields"));
}

TEST_F(ObservingCommandTest, CheckStoresTheObservationsOfTheCommand) {
  const Outcome outcome = check(
      "echo '{\"metric\": \"reserved\", \"bytes\": 2147483648, \"framework_version\": "
      "\"2.6\"}' >> $MEMFATHOM_OBSERVED; echo trained");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "trained\n") << "the command owns standard output";
  EXPECT_THAT(outcome.err, HasSubstr("reserved: estimated "));
  EXPECT_THAT(outcome.err, HasSubstr("observed 2.00 GiB ("));
  ASSERT_EQ(observations().size(), 1U);
  EXPECT_EQ(observations()[0].framework_version, "2.6");
  EXPECT_EQ(observations()[0].gpu, "h100-80gb");
  EXPECT_EQ(json::parse(observations()[0].job)["model"]["preset"], "gpt2");
}

TEST_F(ObservingCommandTest, CheckStoresThePeakObservedOnTheGpu) {
  file("processes", "");
  const Outcome outcome = check(holds(900) + "; " + holds(700), pretend_card());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(observations().size(), 1U) << outcome.err;
  EXPECT_EQ(observations()[0].metric, Metric::kDevice);
  EXPECT_EQ(observations()[0].bytes, 900_MiB);
  EXPECT_EQ(observations()[0].gpu, "h100-80gb");
  EXPECT_EQ(observations()[0].driver, "580.1");
  EXPECT_THAT(outcome.err, HasSubstr("device: estimated "));
}

TEST_F(ObservingCommandTest, CheckMonitorsTheGpusVisibleToTheCommand) {
  file("processes", "");
  std::vector<std::string> gpus = pretend_card();
  gpus.insert(gpus.end(), {"MEMFATHOM_FAKE_CARDS=4", "CUDA_VISIBLE_DEVICES=2"});
  const Outcome outcome = check(holds(900), gpus);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(observations().size(), 1U) << outcome.err;
  EXPECT_EQ(observations()[0].bytes, 900_MiB);
}

// GB10 does not report its memory; its processes are listed with theirs.
TEST_F(ObservingCommandTest, CheckMonitorsAGpuThatSharesTheSystemsMemory) {
  file("processes", "");
  std::vector<std::string> gpus = pretend_card();
  gpus.insert(gpus.end(), {"MEMFATHOM_FAKE_SHARED=1", "MEMFATHOM_FAKE_NAME=NVIDIA GB10"});
  const Outcome outcome = check(holds(900), gpus);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(observations().size(), 1U) << outcome.err;
  EXPECT_EQ(observations()[0].bytes, 900_MiB);
  EXPECT_EQ(observations()[0].gpu, "NVIDIA GB10");
}

TEST_F(ObservingCommandTest, CheckRunsACommandThatItCannotMonitor) {
  file("processes", "");
  std::vector<std::string> gpus = pretend_card();
  gpus.emplace_back("MEMFATHOM_FAKE_FORBIDDEN=0");
  const Outcome outcome = check("echo trained", gpus);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "trained\n");
}

TEST_F(ObservingCommandTest, CheckStoresNoPeakOfAFailedCommand) {
  file("processes", "");
  const Outcome outcome = check(holds(900) + "; exit 7", pretend_card());
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_FALSE(std::filesystem::exists(database()));
}

TEST_F(ObservingCommandTest, CheckWarnsAboutInvalidObservationsAndKeepsTheExitCode) {
  const Outcome outcome = check(
      "echo nonsense,and >> $MEMFATHOM_OBSERVED; echo more >> "
      "$MEMFATHOM_OBSERVED; exit 3");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("warning: "));
}

// A child process that exits on request.
class Holder {
 public:
  explicit Holder(const std::string& command) : pid_(fork()) {
    if (pid_ != 0) return;
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  ~Holder() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  std::string pid() const { return std::to_string(pid_); }

 private:
  pid_t pid_;
};

TEST_F(ObservingCommandTest, MonitorStoresThePeakOfARunningProcess) {
  // Written before monitoring starts; the process exits once it was read on the GPU.
  const std::string path = folder_ + "/processes";
  const Holder holder("while [ ! -e " + path + ".read ]; do :; done");
  file("processes", holder.pid() + " 900 1\n");
  const Outcome outcome = run({"monitor", holder.pid(), "--model", "gpt2", "--sequence-length", "8",
                               "--interval", "0.001", "--format", "json"},
                              pretend_card());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer["schema"], "memfathom.monitor/1");
  EXPECT_EQ(answer["device"], "cuda:0");
  EXPECT_EQ(answer["metric"], "nvml-process");
  EXPECT_EQ(answer["peak_bytes"], (900_MiB).count());
  EXPECT_EQ(answer["kept"], true);
  EXPECT_GT(answer["estimated_bytes"], 0);
  ASSERT_EQ(observations().size(), 1U);
  EXPECT_EQ(observations()[0].bytes, 900_MiB);
}

TEST_F(ObservingCommandTest, MonitorWithoutAJobStoresNothing) {
  const std::string path = folder_ + "/processes";
  const Holder holder("while [ ! -e " + path + ".read ]; do :; done");
  file("processes", holder.pid() + " 900 1\n");
  const Outcome outcome = run({"monitor", holder.pid()}, pretend_card());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("900.00 MiB at most"));
  EXPECT_FALSE(std::filesystem::exists(database()));
}

TEST_F(ObservingCommandTest, MonitorRefusesInvalidProcessesAndOptions) {
  file("processes", "");
  EXPECT_EQ(run({"monitor", "x"}, pretend_card()).exit_code, 2);
  EXPECT_EQ(run({"monitor", "0"}, pretend_card()).exit_code, 2);
  EXPECT_EQ(run({"monitor", "1", "--device", "tpu"}, pretend_card()).exit_code, 2);
  EXPECT_EQ(run({"monitor", "4194305"}, pretend_card()).exit_code, 2) << "beyond any process";
  EXPECT_EQ(run({"monitor", "1"}).exit_code, 4) << "no NVML";
}

}  // namespace
}  // namespace memfathom
