// Families against steps of transformers' own code, recorded by scripts/record-families.py: the
// parameters must agree exactly, the peak of the second iteration to a hundredth.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/document.h"
#include "core/error.h"
#include "tests/estimator/models/recorded_step.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

std::vector<std::filesystem::path> recorded_files() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = project_directory() / "tests" / "data" / "families";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The step that record-families.py records under this name.
std::string job_of(const Node& family, const std::string& name) {
  const Node& input = family.at("input");
  nlohmann::json training{{"mode", "train"},
                          {"batch_size", family.at("batch_size").as_int(1, 1000)},
                          {"precision", name == "fp32" ? "fp32" : "bf16"},
                          {"optimizer", {{"name", "adamw"}}}};
  for (const char* key : {"tokens", "samples"}) {
    if (const Node* length = input.find(key))
      training["sequence_length"] = length->as_int(1, 1 << 20);
  }
  if (const Node* size = input.find("image")) training["image_size"] = to_json(*size);
  if (name == "checkpointing") training["gradient_checkpointing"] = "full";
  if (name == "lora") {
    training["lora"] = {{"rank", 8},
                        {"targets", to_json(family.at("lora_targets"))},
                        {"dropout", 0},
                        {"precision", "fp32"}};
  }
  const nlohmann::json job{{"model", {{"config", to_json(family.at("config"))}}},
                           {"training", training},
                           {"allocator", {{"backend", "none"}}},
                           {"target", {{"gpu", "a100-80gb"}}}};
  return job.dump();
}

TEST(RecordedFamilies, ParametersAgreeAndPeaksToAHundredth) {
  for (const std::filesystem::path& file : recorded_files()) {
    const Node family = load_document(file.string());
    for (const Node& figures : family.at("recorded").entries()) {
      const std::string name(figures.key());
      const std::string what = file.stem().string() + ", " + name;
      const DryRun run = run_recorded(job_of(family, name));
      EXPECT_EQ(run.parameter_count, figures.at("parameters").as_int(1, kMaxBytes)) << what;
      std::int64_t peak = 0;
      std::int64_t recorded = 0;
      for (const char* phase : {"forward", "backward", "step"}) {
        peak = std::max(peak, peak_of(run, phase));
        recorded = std::max(recorded, figures.at(phase).as_int(1, kMaxBytes));
      }
      expect_recorded(peak, recorded, what);
    }
  }
}

TEST(RecordedFamilies, SelectiveCheckpointsOfT5KeepMoreThanFullOnes) {
  const std::string t5 = R"({"model_type": "t5", "d_model": 128, "d_kv": 32, "d_ff": 256,
      "num_layers": 4, "num_heads": 4, "vocab_size": 1000})";
  const auto peak = [&](const std::string& kind) {
    const std::string training =
        R"("sequence_length": 256, "precision": "bf16", "gradient_checkpointing": ")" + kind + "\"";
    return peak_of(run_recorded(recorded_job(t5, training)), "backward");
  };
  EXPECT_LT(peak("full"), peak("selective"));
  EXPECT_LT(peak("selective"), peak("none"));
}

TEST(RecordedFamilies, WhatTheLibraryCannotCheckpointIsRefused) {
  for (const char* type : {"albert", "convnext"}) {
    const Node family = load_document(
        (project_directory() / "tests" / "data" / "families" / (std::string(type) + ".json"))
            .string());
    EXPECT_THROW(run_recorded(job_of(family, "checkpointing")), Error) << type;
  }
}

// Files of full-size models name the cases they have.
TEST(RecordedFamilies, EveryFileHasItsCases) {
  const std::vector<std::filesystem::path> files = recorded_files();
  EXPECT_GE(files.size(), 25U);
  for (const std::filesystem::path& file : files) {
    const Node family = load_document(file.string());
    std::vector<std::string> wanted{"fp32", "bf16", "checkpointing", "lora"};
    if (const Node* cases = family.find("cases")) {
      wanted.clear();
      for (const Node& name : cases->items()) wanted.push_back(name.as_string());
    }
    EXPECT_EQ(family.at("recorded").entries().size(), wanted.size()) << file;
    for (const std::string& name : wanted)
      EXPECT_NE(family.at("recorded").find(name), nullptr) << file << ": " << name;
  }
}

}  // namespace
}  // namespace memfathom
