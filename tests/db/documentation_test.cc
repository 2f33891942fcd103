// Checks docs/database.md: its queries run, and its tables match the schema.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "db/migration.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string page() { return text_of(project_directory() / "docs/database.md"); }

std::vector<std::string> queries_of(const std::string& text) {
  constexpr std::string_view kBegin = "```sql\n";
  std::vector<std::string> queries;
  for (std::size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    const std::size_t end = text.find("```", at);
    queries.push_back(text.substr(at, end - at));
  }
  return queries;
}

class DatabasePageTest : public ::testing::Test {
 protected:
  // An example database of the latest schema.
  void SetUp() override {
    database_.exec(text_of(test_data() / "db" / ("v" + std::to_string(latest_schema()) + ".sql")));
  }
  SQLite::Database database_{":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
};

TEST_F(DatabasePageTest, HasTenQueriesWithResultsInTheExample) {
  const std::vector<std::string> queries = queries_of(page());
  EXPECT_EQ(queries.size(), 10U);
  for (const std::string& sql : queries) {
    SQLite::Statement query(database_, sql);
    EXPECT_TRUE(query.executeStep()) << sql;
  }
}

TEST_F(DatabasePageTest, NamesEveryTable) {
  const std::string text = page();
  SQLite::Statement tables(
      database_,
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  while (tables.executeStep()) {
    const std::string name = tables.getColumn(0).getString();
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace memfathom
