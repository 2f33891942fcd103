#include "cli/status/openmetrics.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

TEST(OpenMetricsTest, WritesHelpAndTypeOncePerFamilyAndEscapesLabels) {
  OpenMetrics metrics;
  metrics.family("memfathom_empty_bytes", "Nothing.");
  metrics.family("memfathom_used_bytes", "Used memory.");
  metrics.sample({{"process", "a\"b\\c\nd"}}, 5);
  metrics.sample({{"process", "e"}}, 6);
  EXPECT_EQ(metrics.text(),
            "# HELP memfathom_used_bytes Used memory.\n"
            "# TYPE memfathom_used_bytes gauge\n"
            "memfathom_used_bytes{process=\"a\\\"b\\\\c\\nd\"} 5\n"
            "memfathom_used_bytes{process=\"e\"} 6\n"
            "# EOF\n");
}

}  // namespace
}  // namespace memfathom
