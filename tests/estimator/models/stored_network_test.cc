// Models of unknown families, from the headers of their safetensors files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "tests/estimator/run_job.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string safetensors(const std::string& header) {
  std::string prefix;
  for (std::size_t i = 0; i < 8; ++i)
    prefix.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  return prefix + header;
}

std::string tensor(const std::string& name, const std::string& shape) {
  return "\"" + name + R"(": {"dtype": "BF16", "shape": [)" + shape +
         R"(], "data_offsets": [0, 0]})";
}

std::string header_of_a_model() {
  std::string header = "{" + tensor("embed_tokens.weight", "1000, 64");
  for (const char* block : {"layers.0.", "layers.1."}) {
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      header += "," + tensor(std::string(block) + name + ".weight", "64, 64");
    for (const char* name : {"gate_proj", "up_proj"})
      header += "," + tensor(std::string(block) + name + ".weight", "160, 64");
    header += "," + tensor(std::string(block) + "down_proj.weight", "64, 160");
    header += "," + tensor(std::string(block) + "norm.weight", "64");
  }
  return header + "," + tensor("lm_head.weight", "1000, 64") + "}";
}

constexpr std::int64_t kParameters = 2 * 64000 + 2 * (4 * 4096 + 3 * 10240 + 64);

class StoredNetworkTest : public ::testing::Test {
 protected:
  void config(const std::string& text) { write(directory_ / "config.json", text); }
  std::string job() const {
    return R"({"model": {"config": ")" + (directory_ / "config.json").string() +
           R"("}, "training": {"batch_size": 2, "sequence_length": 32}})";
  }
  std::string error() const {
    try {
      run_job(job());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return error.what();
    }
    return "no error";
  }

  TemporaryDirectory directory_;
};

TEST_F(StoredNetworkTest, CountsEveryWeightOfAnUnknownFamilyAndTrainsAllOfThem) {
  config(R"({"model_type": "wobble"})");
  // The data of a model of 10 GB is not there, and nobody asks for it.
  write(directory_ / "model.safetensors", safetensors(header_of_a_model()));
  const DryRun run = run_job(job());
  EXPECT_EQ(run.parameter_count, kParameters);
  EXPECT_EQ(run.trainable_count, kParameters);
  EXPECT_GE(in_phase(run, "step", {Component::kGradients}), 4 * kParameters);
  ASSERT_FALSE(run.assumptions.empty());
  EXPECT_THAT(run.assumptions[0], testing::HasSubstr("wobble"));
}

TEST_F(StoredNetworkTest, ReadsTheFilesThatAnIndexNames) {
  config(R"({"model_type": "wobble"})");
  write(directory_ / "one.safetensors",
        safetensors("{" + tensor("layers.0.a.weight", "64, 64") + "}"));
  write(directory_ / "two.safetensors",
        safetensors("{" + tensor("layers.1.a.weight", "64, 64") + "}"));
  write(directory_ / "model.safetensors.index.json",
        R"({"metadata": {"total_size": 1}, "weight_map": {"layers.0.a.weight": "one.safetensors",
            "layers.1.a.weight": "two.safetensors"}})");
  EXPECT_EQ(run_job(job()).parameter_count, 2 * 64 * 64);
}

TEST_F(StoredNetworkTest, SaysWhatIsMissingWhereThereIsNoHeader) {
  config(R"({"model_type": "wobble"})");
  EXPECT_THAT(error(), testing::AllOf(testing::HasSubstr("wobble"),
                                      testing::HasSubstr("model.safetensors")));
}

TEST_F(StoredNetworkTest, RefusesDamagedHeadersInOneSentence) {
  config(R"({"model_type": "wobble"})");
  const fs::path file = directory_ / "model.safetensors";
  write(file, "short");
  EXPECT_THAT(error(), testing::HasSubstr("8 bytes"));
  write(file, std::string(8, '\xff'));
  EXPECT_THAT(error(), testing::HasSubstr("header would have"));
  write(file, safetensors("{}").substr(0, 9));
  EXPECT_THAT(error(), testing::HasSubstr("ends within its header"));
  write(file, safetensors("{" + tensor("a.0.b.weight", "1099511627776, 1099511627776") + "}"));
  EXPECT_THAT(error(), testing::HasSubstr("1099511627776"));
}

TEST_F(StoredNetworkTest, AnIndexCannotLeaveItsFolder) {
  config(R"({"model_type": "wobble"})");
  write(directory_ / "model.safetensors.index.json",
        R"({"weight_map": {"a": "../../etc/passwd"}})");
  EXPECT_THAT(error(), testing::HasSubstr("in the same folder as the index"));
}

}  // namespace
}  // namespace memfathom
