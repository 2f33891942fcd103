// The set-ups of tests/data/advice: what --auto writes is read again by the same program, and fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/advice_fixture.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

json all_jobs() {
  std::ifstream file(test_data() / "advice" / "jobs.json");
  return json::parse(file);
}

class AdviceJobsTest : public AdviceCommandTest, public ::testing::WithParamInterface<json> {
 protected:
  std::vector<std::string> command(const std::vector<fs::path>& files) const {
    std::vector<std::string> words{"recommend", "--from"};
    for (const fs::path& file : files) words.push_back(file.string());
    for (const json& flag : GetParam().at("flags")) words.push_back(flag);
    return words;
  }
};

// Of each file the one that was written in its place.
std::vector<fs::path> written(const fs::path& folder, const std::vector<fs::path>& files) {
  std::vector<fs::path> made;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("recommended")) made.push_back(entry.path());
  }
  if (made.empty()) return {};
  std::vector<fs::path> chosen;
  for (const fs::path& file : files) {
    const fs::path own = folder / ("recommended." + file.filename().string());
    const bool only =
        made.size() == 1 && (files.size() == 1 || made.front().extension() == file.extension());
    chosen.push_back(fs::exists(own) ? own : only ? made.front() : file);
  }
  return chosen;
}

TEST_P(AdviceJobsTest, FitsAgainAfterItWasWritten) {
  const json& job = GetParam();
  const fs::path folder = path(job.at("name"));
  fs::copy(test_data() / "advice" / job.at("name").get<std::string>(), folder);
  std::vector<fs::path> files;
  for (const json& name : job.at("files")) files.push_back(folder / name.get<std::string>());

  std::vector<std::string> words = command(files);
  words.insert(words.end(), {"--auto", (folder / "recommended").string()});
  const Outcome first = run(words);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::vector<fs::path> again = written(folder, files);
  if (again.empty()) {
    EXPECT_THAT(first.err, HasSubstr("--auto wrote nothing: "));
    return;
  }
  EXPECT_THAT(first.err, HasSubstr("estimated again"));
  // What is left to set by hand is not in the files.
  if (first.err.find("set manually") != std::string::npos ||
      first.err.find("a flag sets") != std::string::npos)
    return;
  EXPECT_EQ(answer(command(again))["fits"], true) << first.err;
}

INSTANTIATE_TEST_SUITE_P(SetUps, AdviceJobsTest, ::testing::ValuesIn(all_jobs()),
                         [](const ::testing::TestParamInfo<json>& of) {
                           std::string name = of.param.at("name");
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace memfathom
