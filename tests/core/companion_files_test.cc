#include "core/companion_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

TEST(CompanionFilesTest, APackageOfPythonIsFoundInTheNewestPythonThatHasIt) {
  const std::filesystem::path prefix =
      std::filesystem::path(testing::TempDir()) / "companion_files_prefix";
  std::filesystem::remove_all(prefix);
  const auto make = [&](const char* python, const char* file) {
    std::filesystem::path folder = prefix / "lib" / python / "site-packages/memfathom_cuda";
    std::filesystem::create_directories(folder);
    if (file != nullptr) std::ofstream(folder / file) << "x";
    return folder;
  };
  const auto older = make("python3.9", "module.so"), newer = make("python3.12", "module.so");
  make("python3.13", nullptr);
  make("python3.x", "module.so");
  EXPECT_THAT(python_package_places(Paths{prefix / "bin/memfathom", prefix / "lib/library.so"},
                                    "memfathom_cuda", "module.so"),
              ElementsAre(newer / "module.so", older / "module.so"));
  EXPECT_THAT(python_package_places(Paths{"/nowhere/bin/memfathom"}, "memfathom_cuda", "module.so"),
              testing::IsEmpty());
  std::filesystem::remove_all(prefix);
}

}  // namespace
}  // namespace memfathom
