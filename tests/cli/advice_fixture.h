// Runs estimate commands in a temporary directory without calibrations.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/binary.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {

class AdviceCommandTest : public ::testing::Test {
 protected:
  Outcome run(std::vector<std::string> words,
              const std::vector<std::string>& environment = {}) const {
    words.insert(words.begin(), {"--db", (directory_ / "none.db").string()});
    return run_binary(words, environment);
  }
  nlohmann::json answer(std::vector<std::string> words, int code = 0,
                        const std::vector<std::string>& environment = {}) const {
    words.insert(words.begin(), {"--format", "json"});
    const Outcome outcome = run(words, environment);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  std::string path(const std::string& name) const { return (directory_ / name.c_str()).string(); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string job() const {
    return file("job.yaml",
                "model: {preset: gpt2}\ntraining: {batch_size: 64, sequence_length: 512}\ntarget: "
                "{memory: 16GiB}\n");
  }
  static std::string data(const std::string& name) {
    return test_data().string() + "/readers/" + name;
  }
  static std::string example(const std::string& name) {
    return std::string(MEMFATHOM_EXAMPLES) + "/from-your-script/" + name;
  }

  TemporaryDirectory directory_;
};

}  // namespace memfathom
