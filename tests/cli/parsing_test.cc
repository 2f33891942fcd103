#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

#include "cli/exit_code.h"
#include "cli/global_options.h"
#include "cli/option_parser.h"
#include "core/error.h"

namespace memfathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommandLineTest, AcceptsGlobalOptionsAnywhere) {
  const CommandLine line = parse_command_line({"--quiet", "estimate", "job.yaml", "--format=json",
                                               "--strict", "--db", "x.db", "--output", "o"});
  EXPECT_EQ(line.command, "estimate");
  EXPECT_THAT(line.arguments, ElementsAre("job.yaml", "--strict"));
  EXPECT_TRUE(line.global.quiet);
  EXPECT_EQ(line.global.format, Format::kJson);
  EXPECT_EQ(line.global.db, "x.db");
  EXPECT_EQ(line.global.output, "o");
}

TEST(CommandLineTest, ReplacesUnderscoresInOptionNamesButNotInValues) {
  const CommandLine line = parse_command_line(
      {"estimate", "--batch_size=a_b", "--gpu_memory", "rtx_4090", "--no_color"});
  EXPECT_THAT(line.arguments, ElementsAre("--batch-size=a_b", "--gpu-memory", "rtx_4090"));
  EXPECT_TRUE(line.global.no_color);
}

TEST(CommandLineTest, KeepsArgumentsAfterTwoHyphens) {
  const CommandLine line =
      parse_command_line({"check", "job.yaml", "--", "train", "--batch_size", "4", "--help"});
  EXPECT_THAT(line.arguments,
              ElementsAre("job.yaml", "--", "train", "--batch_size", "4", "--help"));
  EXPECT_FALSE(line.global.help);
}

TEST(CommandLineTest, LeavesEverythingAfterACapturedScriptToTheScript) {
  const CommandLine line = parse_command_line({"capture", "--trace_out", "t.gz", "--quiet",
                                               "train.py", "--batch_size", "4", "-q", "--help"});
  EXPECT_THAT(line.arguments, ElementsAre("--trace-out", "t.gz", "--", "train.py", "--batch_size",
                                          "4", "-q", "--help"));
  EXPECT_TRUE(line.global.quiet);
  EXPECT_FALSE(line.global.help);
  const CommandLine module = parse_command_line({"capture", "-m", "my.train", "--help"});
  EXPECT_THAT(module.arguments, ElementsAre("--", "-m", "my.train", "--help"));
}

struct Parsed {
  bool strict = false;
  std::optional<bool> checkpointing;
  std::optional<std::int64_t> batch;
  std::optional<double> margin;
  std::string plan = "quick";
  std::vector<std::string> set;
  std::vector<std::string> from;
  std::vector<std::string> rest;
};

Parsed parse(const Arguments& arguments) {
  Parsed parsed;
  OptionParser options("estimate");
  options.flag("--strict", parsed.strict);
  options.flag("--gradient-checkpointing", parsed.checkpointing);
  options.option("--batch-size,--micro-batch-size", parsed.batch);
  options.option("--margin", parsed.margin);
  options.option("--plan", parsed.plan);
  options.option("--set", parsed.set);
  options.list_option("--from", parsed.from);
  options.positional("JOB", parsed.rest);
  options.parse(arguments);
  return parsed;
}

std::string error_of(const Arguments& arguments) {
  try {
    parse(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "(no error)";
}

TEST(OptionParserTest, ReadsGivenOptionsAndKeepsTheOtherDefaults) {
  const Parsed parsed = parse({"a.yaml", "--micro-batch-size", "4", "--set", "a=1", "b.yaml",
                               "--set", "b=2", "--margin=0.5"});
  EXPECT_EQ(parsed.batch, 4);
  EXPECT_EQ(parsed.margin, 0.5);
  EXPECT_THAT(parsed.set, ElementsAre("a=1", "b=2"));
  EXPECT_THAT(parsed.rest, ElementsAre("a.yaml", "b.yaml"));
  EXPECT_EQ(parsed.plan, "quick");
  EXPECT_FALSE(parsed.strict);
  EXPECT_EQ(parsed.checkpointing, std::nullopt);
}

TEST(OptionParserTest, AcceptsFalseForFlags) {
  EXPECT_EQ(parse({"--gradient-checkpointing"}).checkpointing, true);
  EXPECT_EQ(parse({"--gradient-checkpointing=false"}).checkpointing, false);
  EXPECT_TRUE(parse({"--strict"}).strict);
}

TEST(OptionParserTest, ReadsAListUpToTheNextOption) {
  EXPECT_THAT(parse({"--from", "a.json", "b.json", "--strict"}).from,
              ElementsAre("a.json", "b.json"));
}

TEST(OptionParserTest, TreatsArgumentsAfterTwoHyphensAsPositional) {
  EXPECT_THAT(parse({"job.yaml", "--", "train", "--epochs", "3"}).rest,
              ElementsAre("job.yaml", "train", "--epochs", "3"));
}

TEST(OptionParserTest, ErrorsNameTheOptionAndTheRemedy) {
  EXPECT_EQ(error_of({"--batch-sise", "4"}),
            "estimate: --batch-sise is not a known option; did you mean --batch-size?");
  EXPECT_EQ(error_of({"--batch-size", "four"}),
            "estimate: --batch-size is \"four\"; it must be a whole number");
  EXPECT_THAT(error_of({"--batch-size"}), HasSubstr("--batch-size"));
  EXPECT_THAT(error_of({"--batch-size", "99999999999999999999"}), HasSubstr("--batch-size"));
  EXPECT_EQ(error_of({"--zzzzzzzzz"}),
            "estimate: --zzzzzzzzz is not a known option; see memfathom estimate --help");
}

TEST(ExitCodeTest, FollowsTheContract) {
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorKind::kUsage)), 2);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorKind::kInput)), 2);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorKind::kEnvironment)), 4);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorKind::kOutOfMemory)), 4);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorKind::kInternal)), 70);
}

}  // namespace
}  // namespace memfathom
