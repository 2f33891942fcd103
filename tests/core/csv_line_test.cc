#include "core/csv_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memfathom {
namespace {

using testing::ElementsAre;

TEST(CsvLineTest, SplitsAtCommasOutsideQuotes) {
  EXPECT_THAT(csv_fields(R"(a,"b, c",,"say ""d""")"), ElementsAre("a", "b, c", "", "say \"d\""));
}

TEST(CsvLineTest, DropsTheCarriageReturnOfWindows) {
  EXPECT_THAT(csv_fields("a,b\r"), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace memfathom
