#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "core/progress.h"
#include "core/suggest.h"
#include "core/table.h"
#include "core/utf8.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::array<std::string_view, 4> kCommands{"estimate", "status", "recommend", "db"};

TEST(SuggestTest, FindsTheNearestName) {
  EXPECT_EQ(nearest_name("estmate", kCommands), "estimate");
  EXPECT_EQ(nearest_name("etsimate", kCommands), "estimate");
  EXPECT_EQ(nearest_name("ESTIMATE", kCommands), "estimate");
  EXPECT_EQ(nearest_name("stats", kCommands), "status");
  EXPECT_EQ(nearest_name("dd", kCommands), "db");
}

TEST(SuggestTest, SuggestsNothingWhenAllAreFar) {
  EXPECT_EQ(nearest_name("frobnicate", kCommands), std::nullopt);
  EXPECT_EQ(nearest_name("", kCommands), std::nullopt);
  EXPECT_EQ(nearest_name("x", kCommands), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100000, 'e'), kCommands), std::nullopt);
  EXPECT_EQ(suggestion("frobnicate", kCommands), "use one of estimate, status, recommend, db");
}

TEST(SuggestTest, HyphensEqualUnderscores) {
  constexpr std::array<std::string_view, 1> kNames{"batch_size"};
  EXPECT_EQ(nearest_name("batch-sze", kNames), "batch_size");
}

TEST(Utf8Test, CountsTheColumnsOfATerminal) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("é"), 1U);
  EXPECT_EQ(display_width("e\u0301"), 1U);  // combining acute
  EXPECT_EQ(display_width("显存"), 4U);
  EXPECT_EQ(display_width("ﾒﾓﾘ"), 3U);  // halfwidth katakana
  EXPECT_EQ(display_width("メモリ"), 6U);
  EXPECT_EQ(display_width("메모리"), 6U);
  EXPECT_EQ(display_width("🚀"), 2U);
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3U);
  EXPECT_EQ(display_width("\xff"), 1U);
  EXPECT_EQ(display_width(""), 0U);
}

TEST(Utf8Test, FindsTheFirstInvalidByte) {
  EXPECT_EQ(find_invalid_utf8("aé显🚀"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("a\xff"), 1U);
  EXPECT_EQ(find_invalid_utf8("a\xc3"), 1U);             // cut short
  EXPECT_EQ(find_invalid_utf8("\xc0\xaf"), 0U);          // overlong
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\xaf"), 0U);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0U);      // a surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U);  // beyond U+10FFFF
  EXPECT_EQ(find_invalid_utf8("\xf4\x8f\xbf\xbf"), std::string_view::npos);
}

TEST(Utf8Test, CutsBetweenCodePoints) {
  EXPECT_EQ(cut_utf8("aé", 2), "a");
  EXPECT_EQ(cut_utf8("aé", 3), "aé");
  EXPECT_EQ(cut_utf8("", 3), "");
}

Table sizes() {
  Table table({{"component"}, {"size", Align::kRight}});
  table.add_row({"parameters", "12.55 GiB"});
  table.add_row({"显存 | x", "1 B"});
  table.add_rule();
  table.add_row({Cell("total", Style::kBold), "13 GiB"});
  return table;
}

TEST(TableTest, AlignsColumnsByDisplayWidth) {
  EXPECT_EQ(sizes().text(false),
            "component        size\n"
            "---------------------\n"
            "parameters  12.55 GiB\n"
            "显存 | x          1 B\n"
            "---------------------\n"
            "total          13 GiB\n");
}

TEST(TableTest, WritesEscapeSequencesOnlyInColour) {
  EXPECT_THAT(sizes().text(false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(sizes().text(true), HasSubstr("\x1b[1mtotal\x1b[0m          13 GiB"));
}

TEST(TableTest, EscapesControlCharactersOfCells) {
  Table table({{"name"}});
  table.add_row({"a\x1b[2Jb\nc"});
  EXPECT_EQ(table.text(true), "\x1b[1mname\x1b[0m\n-------------\na\\u001b[2Jb c\n");
}

TEST(TableTest, RendersMarkdown) {
  EXPECT_EQ(sizes().markdown(),
            "| component | size |\n|---|---:|\n| parameters | 12.55 GiB |\n| 显存 \\| x | 1 B |\n| "
            "total | 13 GiB |\n");
}

TEST(TableTest, QuotesCsvWhereNeeded) {
  Table table({{"a"}, {"b"}});
  table.add_row({"1,5", "say \"hi\""});
  table.add_row({"line\nbreak", ""});
  EXPECT_EQ(table.csv(), "a,b\r\n\"1,5\",\"say \"\"hi\"\"\"\r\n\"line\nbreak\",\r\n");
}

TEST(TableTest, CellsOfCsvAreNoFormulas) {
  Table table({{"a"}});
  for (const char* cell : {"=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(1)"}) {
    table.add_row({cell});
  }
  for (const char* cell : {"-12.5", "+3 %", "-1.20 GiB", "-", "a=b"}) table.add_row({cell});
  EXPECT_EQ(table.csv(),
            "a\r\n\"'=1+1\"\r\n\"'+cmd|' /C calc'!A0\"\r\n\"'-2+3+cmd|' /C calc'!A0\"\r\n"
            "\"'@SUM(1)\"\r\n-12.5\r\n+3 %\r\n-1.20 GiB\r\n-\r\na=b\r\n");
}

TEST(TableTest, CellsOfMarkdownAreText) {
  Table table({{"a"}});
  table.add_row({"![x](http://x)<script>`"});
  EXPECT_EQ(table.markdown(), "| a |\n|---|\n| !\\[x\\](http://x)\\<script>\\` |\n");
}

TEST(TableTest, RefusesARowOfAnotherLength) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), Error);
}

TEST(TableTest, ColourNeedsATerminalThatIsNotDumbAndNoNoColor) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(wants_colour(terminal));
  EXPECT_FALSE(wants_colour(-1));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_colour(terminal));
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(wants_colour(terminal));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(wants_colour(terminal));
  close(terminal);
}

TEST(ProgressTest, WritesAtMostTenLinesToAPipe) {
  std::ostringstream out;
  double now = 0;
  {
    Progress progress(
        out, ProgressMode::kPipe, "profile", 1000, [&] { return now; }, 80);
    for (int i = 0; i < 1000; ++i) {
      now += 0.5;
      progress.advance();
    }
  }
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_THAT(text, HasSubstr("profile: 100 of 1000, 2.0/s, 7 min 30 s left\n"));
  EXPECT_THAT(text, HasSubstr("profile: 1000 of 1000, 2.0/s\n"));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(ProgressTest, WritesOneLineToATerminalAndClearsItAtTheEnd) {
  std::ostringstream out;
  double now = 0;
  {
    Progress progress(
        out, ProgressMode::kTerminal, "profile", 3, [&] { return now; }, 80);
    now += 2;
    progress.advance(1, "mlp/w1024");
  }
  EXPECT_EQ(out.str(), "\rprofile: 1 of 3, 2.0 s each, 4 s left  mlp/w1024\x1b[K\r\x1b[K");
}

TEST(ProgressTest, UpdatesATerminalAtMostTenTimesPerSecond) {
  std::ostringstream out;
  double now = 0;
  Progress progress(
      out, ProgressMode::kTerminal, "p", 100000, [&] { return now; }, 80);
  for (int i = 0; i < 1000; ++i) {
    now += 0.001;
    progress.advance();
  }
  const std::string text = out.str();
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 11);
}

TEST(ProgressTest, ALineNeverReachesTheLastColumn) {
  std::ostringstream out;
  Progress progress(
      out, ProgressMode::kTerminal, "profile", 3, [] { return 0.0; }, 12);
  progress.advance(1, "a very long note 显存");
  EXPECT_EQ(out.str(), "\rprofile: 1 \x1b[K");
}

TEST(ProgressTest, QuietWritesNothing) {
  std::ostringstream out;
  {
    Progress progress(
        out, ProgressMode::kQuiet, "profile", 3, [] { return 0.0; }, 80);
    progress.advance(3);
  }
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(progress_mode(-1, true), ProgressMode::kQuiet);
  EXPECT_EQ(progress_mode(-1, false), ProgressMode::kPipe);
}

TEST(ProgressTest, WritesReadableDurations) {
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(duration_text(59.2), "1 min 0 s");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
  EXPECT_EQ(duration_text(3900), "1 h 5 min");
}

}  // namespace
}  // namespace memfathom
