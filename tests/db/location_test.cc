#include "db/location.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <optional>

#include "core/error.h"

namespace memfathom {
namespace {

// Sets environment variables for one test and restores them.
class LocationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"MEMFATHOM_DB", "XDG_DATA_HOME", "HOME"}) {
      const char* value = getenv(name);
      old_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : old_) {
      if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }
  std::map<std::string, std::optional<std::string>> old_;
};

TEST_F(LocationTest, PrefersTheVariableOfMemfathomThenXdgThenHome) {
  setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(default_database_path(), "/home/ada/.local/share/memfathom/memfathom.db");
  setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(default_database_path(), "/data/memfathom/memfathom.db");
  setenv("MEMFATHOM_DB", "fleet.db", 1);
  EXPECT_EQ(default_database_path(), "fleet.db");
}

TEST_F(LocationTest, IgnoresARelativeXdgDirectoryAndAnEmptyName) {
  setenv("HOME", "/home/ada", 1);
  setenv("XDG_DATA_HOME", "data", 1);
  setenv("MEMFATHOM_DB", "", 1);
  EXPECT_EQ(default_database_path(), "/home/ada/.local/share/memfathom/memfathom.db");
}

TEST_F(LocationTest, FindsNoDatabaseWithoutAHome) {
  EXPECT_EQ(find_default_database_path(), std::nullopt);
}

TEST_F(LocationTest, NamesTheVariableToSetIfThereIsNoHome) {
  try {
    default_database_path();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_NE(std::string(error.what()).find("MEMFATHOM_DB"), std::string::npos);
  }
}

}  // namespace
}  // namespace memfathom
