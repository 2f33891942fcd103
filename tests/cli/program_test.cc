#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/command.h"
#include "tests/cli/binary.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ProgramTest, PrintsHelpWithEveryCommandToStandardOutput) {
  const Outcome outcome = run_binary({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const Command& command : commands()) {
    const auto listed = HasSubstr("\n  " + std::string(command.name) + " ");
    if (command.is_internal()) {
      EXPECT_THAT(outcome.out, Not(listed));
    } else {
      EXPECT_THAT(outcome.out, listed);
    }
  }
}

TEST(ProgramTest, RefusesAMissingCommandAndPrintsNothingToStandardOutput) {
  const Outcome outcome = run_binary({});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("usage: memfathom"));
}

TEST(ProgramTest, CompletionIgnoresTableRulesInPages) {
  const std::string script = run_binary({"completion", "bash"}).out;
  EXPECT_THAT(script, HasSubstr("--gpu-memory"));
  EXPECT_THAT(script, Not(HasSubstr("--- ")));
}

TEST(ProgramTest, PrintsItsVersion) {
  const Outcome outcome = run_binary({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "memfathom " MEMFATHOM_VERSION "\n");
}

TEST(ProgramTest, PrintsAHelpPageForEveryCommand) {
  for (const Command& command : commands()) {
    if (command.is_internal()) continue;
    const std::string name(command.name);
    EXPECT_THAT(std::string(page_of(command)), StartsWith("# memfathom " + name)) << name;
    const Outcome outcome = run_binary({name, "--help"});
    EXPECT_EQ(outcome.exit_code, 0) << name;
    EXPECT_EQ(outcome.out, page_of(command)) << name;
  }
}

TEST(ProgramTest, SuggestsTheNearestCommand) {
  const Outcome outcome = run_binary({"complation", "bash"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "memfathom: \"complation\" is not a command; did you mean completion?\n");
}

TEST(ProgramTest, SuggestsTheNearestOption) {
  EXPECT_EQ(run_binary({"completion", "bash", "--qiuet"}).err,
            "memfathom: completion: --qiuet is not a known option; did you mean --quiet?\n");
  EXPECT_EQ(run_binary({"--qiuet"}).err,
            "memfathom: \"--qiuet\" is not an option of memfathom; did you mean \"--quiet\"?\n");
  EXPECT_EQ(run_binary({"completion", "bash", "--qiuet"}).exit_code, 2);
  EXPECT_EQ(run_binary({"completion", "bash", "--format", "jsn"}).err,
            "memfathom: --format is \"jsn\"; did you mean \"json\"?\n");
}

TEST(ProgramTest, RefusesMissingAndUnexpectedArguments) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"completion"},
                                             {"completion", "bash", "x"},
                                             {"completion", "zsh"},
                                             {"completion", "bash", "--output"},
                                             {"completion", "bash", "--db="},
                                             {""},
                                             {"help", "nothing-like-it"}}) {
    const Outcome outcome = run_binary(words);
    EXPECT_EQ(outcome.exit_code, 2) << testing::PrintToString(words);
    EXPECT_EQ(outcome.out, "") << testing::PrintToString(words);
    EXPECT_THAT(outcome.err, StartsWith("memfathom: ")) << testing::PrintToString(words);
  }
}

TEST(ProgramTest, WritesTheOutputFileAtomically) {
  const std::string path = testing::TempDir() + "memfathom_output_test";
  std::ofstream(path) << "old";
  const Outcome outcome = run_binary({"--output=" + path, "completion", "bash"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "");
  std::ifstream file(path);
  const std::string content(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(content, run_binary({"completion", "bash"}).out);

  std::ofstream(path) << "kept";
  EXPECT_EQ(run_binary({"completion", "zsh", "--output", path}).exit_code, 2);
  std::ifstream again(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), "kept");
  std::remove(path.c_str());
}

TEST(ProgramTest, ReportsAnUnwritableOutputAsAnEnvironmentError) {
  const Outcome outcome = run_binary({"completion", "bash", "--output", "/nonexistent/x"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err,
            "memfathom: /nonexistent/x: cannot be written: No such file or directory; choose "
            "another place\n");
  EXPECT_EQ(run_binary({"completion", "bash", "--output", "/dev/full"}).exit_code, 4);
  EXPECT_EQ(run_binary({"completion", "bash", "--output", "/dev/null"}).exit_code, 0);
}

TEST(ProgramTest, CompletesCommandsAndTheirOptions) {
  const std::string script = run_binary({"completion", "bash"}).out;
  for (const Command& command : commands()) {
    if (command.is_internal()) continue;
    EXPECT_THAT(script, HasSubstr("    " + std::string(command.name) + ") options="));
  }
  EXPECT_THAT(script, HasSubstr("    completion) options=\"--db --format --help"));
  EXPECT_THAT(options_of(commands().front()), Contains("--output"));
}

TEST(ProgramTest, CompletionWorksInBash) {
  const std::string path = testing::TempDir() + "memfathom_completion_test.bash";
  run_binary({"completion", "bash", "--output", path});
  const std::string command = "bash -c 'source " + path +
                              "; COMP_WORDS=(memfathom compl); COMP_CWORD=1; _memfathom; "
                              "[[ \"${COMPREPLY[*]}\" == completion ]]'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace memfathom
