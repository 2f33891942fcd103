#include "kernels/workspaces/library_workspaces.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace memfathom {
namespace {

TEST(LibraryWorkspacesTest, SaysWhichArchitectureStandsInForOneThatIsNotDescribed) {
  const LibraryWorkspaces workspaces;
  EXPECT_EQ(workspaces.open({90, false, "9.19"}).compute_capability, 90);
  EXPECT_EQ(workspaces.open({70, false, "9.19"}).compute_capability, 75);
  EXPECT_EQ(workspaces.open({87, false, "9.19"}).compute_capability, 86);
  EXPECT_EQ(workspaces.open({103, false, "9.19"}).compute_capability, 100);
  EXPECT_EQ(workspaces.open({121, false, "9.19"}).compute_capability, 120);
}

TEST(LibraryWorkspacesTest, OpensAModelOnce) {
  const LibraryWorkspaces workspaces;
  const WorkspaceModel* model = workspaces.open({80, false, "9.8"}).model;
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(workspaces.open({80, false, "9.8"}).model, model);
  EXPECT_NE(workspaces.open({80, false, "9.19"}).model, model);
}

// The catch block of before answered any error with another architecture.
TEST(LibraryWorkspacesTest, AVersionWithoutATableIsAnError) {
  EXPECT_THROW(LibraryWorkspaces().open({80, false, "7.6"}), Error);
}

}  // namespace
}  // namespace memfathom
