#include "core/printable.h"

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>

namespace memfathom {
namespace {

TEST(PrintableTest, LeavesTextOfAnyLanguageAlone) {
  const std::string text = "a\tb\nGrüße, 显存 🙂 и\r\n";
  EXPECT_EQ(printable(text), text);
}

TEST(PrintableTest, ShowsControlsAndMarksOfDirection) {
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\u001b]0;title\\u0007");
  EXPECT_EQ(printable("a\rb\x7f"), "a\\u000db\\u007f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m")
      << "C1 CSI";
  EXPECT_EQ(printable("\u202egpj.exe\u2069"), "\\u202egpj.exe\\u2069");
  EXPECT_EQ(printable("\u2028"), "\\u2028");
  EXPECT_EQ(printable("caf\xe9!"), "caf\\ufffd!") << "Latin-1";
}

TEST(PrintableTest, PassesOnlyOurOwnColours) {
  EXPECT_EQ(printable("\x1b[1mtotal\x1b[0m", true), "\x1b[1mtotal\x1b[0m");
  EXPECT_EQ(printable("\x1b[8mhidden\x1b[2J", true), "\\u001b[8mhidden\\u001b[2J");
  EXPECT_EQ(printable("\x1b[1m"), "\\u001b[1m");
}

TEST(PrintableBufferTest, PutsTogetherWhatIsWrittenInPieces) {
  std::ostringstream output;
  {
    PrintableBuffer buffer(output, false);
    std::ostream stream(&buffer);
    stream << "\xe2\x80" << '\xae' << "x\nrest";
    EXPECT_EQ(output.str(), "\\u202ex\n");
    stream.flush();
    EXPECT_EQ(output.str(), "\\u202ex\nrest");
    stream << "end";
  }
  EXPECT_EQ(output.str(), "\\u202ex\nrestend");
}

TEST(PrintableBufferTest, FailsWithTheStreamBehindIt) {
  std::ostringstream output;
  output.setstate(std::ios::badbit);
  PrintableBuffer buffer(output, false);
  std::ostream stream(&buffer);
  stream << "x\n" << std::flush;
  EXPECT_FALSE(stream);
}

}  // namespace
}  // namespace memfathom
