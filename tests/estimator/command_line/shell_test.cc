#include "estimator/command_line/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace memfathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> words_of(const std::string& text, std::size_t command = 0) {
  const ShellScript script = read_shell(text, "x.sh");
  std::vector<std::string> words;
  if (command >= script.commands.size()) return words;
  for (const ShellWord& word : script.commands[command].words) words.push_back(word.text);
  return words;
}

std::vector<std::string> unresolved_in(const std::string& text) {
  std::vector<std::string> names;
  for (const ShellCommand& command : read_shell(text, "x.sh").commands) {
    for (const ShellWord& word : command.words)
      names.insert(names.end(), word.unresolved.begin(), word.unresolved.end());
  }
  return names;
}

TEST(ShellTest, ResolvesVariablesDefaultsAndArrays) {
  EXPECT_THAT(words_of("A=1\nexport B=\"two words\"\nrun $A \"$B\" $B ${C:-3} ${A:-4}"),
              ElementsAre("run", "1", "two words", "two", "words", "3", "1"));
  EXPECT_THAT(words_of("X=(a \"b c\" # comment\n d)\nX+=(e)\nrun \"${X[@]}\""),
              ElementsAre("run", "a", "b c", "d", "e"));
  EXPECT_THAT(words_of("N=8\nrun $((N * (2 + 1))) ${N}x"), ElementsAre("run", "24", "8x"));
}

TEST(ShellTest, JoinsContinuedLinesAndDropsCommentsAndRedirections) {
  EXPECT_THAT(words_of("run a \\\n  b \\  \n  c # d\n"), ElementsAre("run", "a", "b", "c"));
  EXPECT_THAT(words_of("run a > log 2>&1 &\nother"), ElementsAre("run", "a"));
  EXPECT_THAT(words_of("run a | tee log"), ElementsAre("run", "a"));
  EXPECT_THAT(words_of("run '$A' \\$A \"a\\\"b\""), ElementsAre("run", "$A", "$A", "a\"b"));
}

TEST(ShellTest, NamesWhatOnlyARunCouldKnow) {
  EXPECT_THAT(unresolved_in("run $UNSET"), ElementsAre("UNSET"));
  EXPECT_THAT(unresolved_in("run $(nproc --all)"), ElementsAre("$(nproc --all)"));
  EXPECT_THAT(unresolved_in("A=$(nproc)\nrun $A"), ElementsAre("$(nproc)"));
  EXPECT_THAT(unresolved_in("run $((UNSET * 2))"), ElementsAre("$((UNSET * 2))"));
  EXPECT_THAT(unresolved_in("run `hostname` $1"), ElementsAre("$(hostname)", "$1"));
}

TEST(ShellTest, AVariableThatTwoBranchesSetDifferentlyIsUnresolved) {
  EXPECT_THAT(unresolved_in("if [ $1 ]; then A=1; else A=2; fi\nrun $A"), ElementsAre("$1", "A"));
  EXPECT_THAT(words_of("if [ -z x ]; then A=1; fi\nrun $A", 1), ElementsAre("run", "1"));
}

TEST(ShellTest, TakesWhatABranchAppendsAndSaysSo) {
  const ShellScript script = read_shell(
      "ARGS=--bf16\nif [ -n \"$LORA\" ]; then\n  ARGS+=\" --use_peft\"\nfi\npython a.py $ARGS\n",
      "a.sh");
  ASSERT_EQ(script.notes.size(), 1U);
  EXPECT_EQ(script.notes.front(),
            "a.sh:4: what the branch appends to ARGS, \" --use_peft\", is taken");
}

TEST(ShellTest, TakesTheFirstValueOfALoopAndSaysSo) {
  const ShellScript script = read_shell("for lr in 1 2; do\n run $lr\ndone", "x.sh");
  ASSERT_THAT(script.commands, SizeIs(1));
  EXPECT_EQ(script.commands[0].words[1].text, "1");
  EXPECT_EQ(script.commands[0].line, 2);
  EXPECT_THAT(script.notes, ElementsAre(HasSubstr("the loop over lr")));
}

TEST(ShellTest, KeepsHereDocumentsAsFilesAndVariables) {
  const ShellScript script = read_shell(
      "S=3\ncat > ds.json <<EOF\n{\"stage\": $S}\nEOF\nread -r -d '' cmd <<'EOF'\na b\nEOF\n"
      "run $cmd",
      "x.sh");
  EXPECT_EQ(script.files.at("ds.json"), "{\"stage\": 3}\n");
  ASSERT_THAT(script.commands, SizeIs(2));
  EXPECT_THAT(script.commands[1].words, SizeIs(3));
}

TEST(ShellTest, KeepsTheEnvironmentOfACommand) {
  const ShellScript script =
      read_shell("export CUDA_VISIBLE_DEVICES=0,1\nNPROC_PER_NODE=2 run", "x.sh");
  ASSERT_THAT(script.commands, SizeIs(1));
  EXPECT_EQ(script.commands[0].environment.at("CUDA_VISIBLE_DEVICES").text, "0,1");
  EXPECT_EQ(script.commands[0].environment.at("NPROC_PER_NODE").text, "2");
  EXPECT_THAT(script.commands[0].words, SizeIs(1));
}

TEST(ShellTest, RefusesVariablesThatGrowWithoutBound) {
  std::string text = "A=0123456789\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  EXPECT_THROW(read_shell(text + "run $A", "x.sh"), Error);
  EXPECT_THROW(read_shell(std::string("run \0", 5), "x.sh"), Error);
}

TEST(ShellTest, RefusesExpansionsThatAreNestedTooDeeply) {
  std::string text = "run ";
  for (int i = 0; i < 2000; ++i) text += "${A:-";
  EXPECT_THROW(read_shell(text + std::string(2000, '}'), "x.sh"), Error);
}

}  // namespace
}  // namespace memfathom
