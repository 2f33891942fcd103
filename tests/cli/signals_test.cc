// Signals: they reach the command of `check`, they end the probe of `calibrate`, and nothing is
// left running.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

#include "tests/cli/profiling_fixture.h"

namespace memfathom {
namespace {

class SignalsTest : public ProfilingFixture {
 protected:
  // The program, running.
  pid_t start(const std::vector<std::string>& words, const std::vector<std::string>& environment) {
    std::vector<std::string> line{MEMFATHOM_BINARY, "--db", database()};
    line.insert(line.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : line) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child != 0) return child;
    for (const std::string& pair : environment)
      setenv(pair.substr(0, pair.find('=')).c_str(), pair.substr(pair.find('=') + 1).c_str(), 1);
    setenv("MEMFATHOM_NVML", "/nonexistent", 1);
    setenv("TMPDIR", (folder_ + "/tmp").c_str(), 1);
    execv(MEMFATHOM_BINARY, arguments.data());
    _exit(127);
  }
  pid_t start_check(const std::string& command) {
    std::filesystem::create_directory(folder_ + "/tmp");
    return start({"check", "--quiet", "--model", "gpt2", "--sequence-length", "8", "--gpu",
                  "h100-80gb", "--", "sh", "-c", command},
                 {});
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  // Written under another name first, so that it is complete once it is there.
  std::string tells(const std::string& name) const {
    return "echo $$ > " + path(name) + ".new; mv " + path(name) + ".new " + path(name) + "; ";
  }
  // The number that a process told.
  pid_t wait_for_file(const std::string& name) const {
    while (!std::filesystem::exists(path(name))) sched_yield();
    std::ifstream file(path(name));
    pid_t number = 0;
    file >> number;
    return number;
  }
  static int exit_code_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
};

TEST_F(SignalsTest, ACommandUnderCheckGetsTheSignalsAndIsWaitedFor) {
  for (const auto& [name, signal] : std::vector<std::pair<std::string, int>>{
           {"TERM", SIGTERM}, {"HUP", SIGHUP}, {"USR1", SIGUSR1}, {"INT", SIGINT}}) {
    const pid_t check = start_check("trap '" + tells("saved" + name) + "exit 9' " + name + "; " +
                                    tells("ready" + name) + "while :; do :; done");
    wait_for_file("ready" + name);
    kill(check, signal);
    EXPECT_EQ(exit_code_of(check), 9) << name;
    EXPECT_TRUE(std::filesystem::exists(path("saved" + name))) << name;
    EXPECT_TRUE(std::filesystem::is_empty(path("tmp"))) << name;
    std::filesystem::remove(path("tmp"));
  }
}

TEST_F(SignalsTest, ASignalThatTheCommandDoesNotHandleIsTheExitCode) {
  const pid_t check = start_check(tells("ready") + "exec sleep 600");
  const pid_t command = wait_for_file("ready");
  kill(check, SIGTERM);
  EXPECT_EQ(exit_code_of(check), 128 + SIGTERM);
  EXPECT_EQ(kill(command, 0), -1) << "it still runs";
}

TEST_F(SignalsTest, ACommandGoesOnAfterASignalThatItHandles) {
  const pid_t check = start_check("trap '" + tells("checkpoint") + "' USR1; " + tells("ready") +
                                  "while [ ! -e " + path("checkpoint") + " ]; do :; done; exit 4");
  wait_for_file("ready");
  kill(check, SIGUSR1);
  EXPECT_EQ(exit_code_of(check), 4);
}

TEST_F(SignalsTest, ACommandIsToldWhenCheckIsKilled) {
  const pid_t check = start_check("trap '" + tells("saved") + "exit 9' TERM; " + tells("ready") +
                                  "while :; do :; done");
  wait_for_file("ready");
  kill(check, SIGKILL);
  EXPECT_EQ(exit_code_of(check), 1000 + SIGKILL);
  EXPECT_GT(wait_for_file("saved"), 0);
}

TEST_F(SignalsTest, ASignalEndsTheProbeOfACalibrationAndKeepsItsSamples) {
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1}) {
    std::filesystem::remove(path("ready"));
    const pid_t calibrate =
        start({"calibrate", "--quiet", "--device", "virtual:plain", "--plan", "quick"},
              {probe("*'\"workload\":\"\"'*) ;;\n*'\"workload\":\"mlp'*) ;;\n*) " + tells("ready") +
                     "exec sleep 600;;\n")});
    const pid_t running = wait_for_file("ready");
    kill(calibrate, signal);
    EXPECT_EQ(exit_code_of(calibrate), 128 + signal);
    EXPECT_EQ(kill(running, 0), -1) << "the probe still runs";
  }
  for (const auto& [name, sample] : samples()) EXPECT_EQ(sample.status, SampleStatus::kOk) << name;
}

TEST_F(SignalsTest, AProbeDoesNotOutliveACalibrationThatIsKilled) {
  const pid_t calibrate = start({"calibrate", "--quiet", "--device", "virtual:plain"},
                                {probe("*) " + tells("ready") + "exec sleep 600;;\n")});
  const pid_t running = wait_for_file("ready");
  kill(calibrate, SIGKILL);
  exit_code_of(calibrate);
  while (kill(running, 0) == 0) {  // until init, or whoever adopts it, has collected it
    std::ifstream stat("/proc/" + std::to_string(running) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(stat), {}};
    if (text.empty() || text.find(") Z") != std::string::npos) break;
    sched_yield();
  }
}

}  // namespace
}  // namespace memfathom
