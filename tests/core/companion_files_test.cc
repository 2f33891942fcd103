#include "core/companion_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace memfathom {
namespace {

using Paths = std::vector<std::filesystem::path>;
using testing::ElementsAre;

TEST(CompanionFilesTest, AProgramWithoutALibraryNamesItselfOnce) {
  EXPECT_THAT(own_binaries(), ElementsAre(std::filesystem::canonical("/proc/self/exe")));
}

TEST(CompanionFilesTest, AProgramLooksBesideItselfAndInItsPrefix) {
  EXPECT_THAT(companion_places(Paths{"/opt/m/bin/memfathom"}, "libexec", "planner"),
              ElementsAre("/opt/m/bin/planner", "/opt/m/libexec/memfathom/planner"));
}

TEST(CompanionFilesTest, ALibraryInPythonLooksInItsOwnPrefixBeforeThatOfPython) {
  EXPECT_THAT(
      companion_places(Paths{"/venv/lib/libmemfathom.so.0", "/usr/bin/python3.11"}, "lib",
                       "module.so"),
      ElementsAre("/venv/lib/module.so", "/venv/bin/module.so", "/venv/lib/memfathom/module.so",
                  "/usr/bin/module.so", "/usr/lib/memfathom/module.so"));
}

TEST(CompanionFilesTest, AFolderPerArchitectureIsNotThePrefix) {
  EXPECT_THAT(
      companion_places(Paths{"/usr/lib/x86_64-linux-gnu/libmemfathom.so.0"}, "lib", "module.so"),
      ElementsAre("/usr/lib/x86_64-linux-gnu/module.so", "/usr/bin/module.so",
                  "/usr/lib/memfathom/module.so"));
}

}  // namespace
}  // namespace memfathom
