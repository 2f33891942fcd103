#include "core/wrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/table.h"
#include "core/utf8.h"

namespace memfathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WrapTest, CutsBetweenWordsOnly) {
  EXPECT_THAT(wrapped_lines("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped_lines("gradient_accumulation_steps 4", 10),
              ElementsAre("gradient_accumulation_steps", "4"));
  EXPECT_THAT(wrapped_lines("", 10), ElementsAre(""));
  EXPECT_EQ(unbroken_width("a longest b"), 7U);
}

TEST(WrapTest, CutsChineseBetweenCharactersButNotBeforeAMark) {
  EXPECT_THAT(wrapped_lines("显存不够，换卡", 8), ElementsAre("显存不", "够，换卡"));
  EXPECT_THAT(wrapped_lines("使用 PYTORCH_CUDA", 8), ElementsAre("使用", "PYTORCH_CUDA"));
}

TEST(WrapTest, KeepsANumberAndItsUnitTogether) {
  EXPECT_THAT(wrapped_lines("too much: 607.3 % of 2.00 GiB", 15),
              ElementsAre("too much:", "607.3 % of", "2.00 GiB"));
}

TEST(WrapTest, ColoursTakeNoRoom) {
  EXPECT_THAT(wrapped_lines("\x1b[32mfits\x1b[0m now", 8), ElementsAre("\x1b[32mfits\x1b[0m now"));
}

TEST(WrapTest, LinesAfterTheFirstHaveAHangingIndent) {
  EXPECT_EQ(wrapped("assumed: one two three\nshort\n", 14), "assumed: one\n  two three\nshort\n");
  EXPECT_EQ(wrapped("  [ ] one two three", 12), "  [ ] one\n    two\n    three");
}

TEST(WrapTest, LeavesSettingsToCopyAndPipesAlone) {
  EXPECT_EQ(wrapped("    key: a long value", 8), "    key: a long value");
  EXPECT_EQ(wrapped("a long line that is piped", 0), "a long line that is piped");
}

Table suggestion_table() {
  Table table({{"", Align::kRight}, {"change"}, {"saves", Align::kRight}, {"costs"}});
  table.add_row({"1", "checkpointing none to full", "13.57 GiB",
                 "every forward pass runs twice: about a third more time"});
  return table;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    widest = std::max(widest, display_width(text.substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

TEST(NarrowTableTest, WrapsTheCellsOfTheWidestColumn) {
  const std::string text = suggestion_table().text(false, 72);
  EXPECT_EQ(widest_line(text), 72U);
  EXPECT_THAT(text, HasSubstr("checkpointing none to full  13.57 GiB  every"));
}

TEST(NarrowTableTest, PutsColumnsBelowTheRowIfTheirWordsDoNotFit) {
  const std::string text = suggestion_table().text(false, 34);
  EXPECT_EQ(text,
            "   change                    saves\n"
            "----------------------------------\n"
            "1  checkpointing none    13.57 GiB\n"
            "   to full\n"
            "    costs: every forward pass runs\n"
            "    twice: about a third more time\n");
}

TEST(NarrowTableTest, AnyWidthIsTheTableAsItIs) {
  EXPECT_EQ(suggestion_table().text(false, 0), suggestion_table().text(false, 200));
}

}  // namespace
}  // namespace memfathom
