#include "kernels/workspace/architectures.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/error.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

TEST(ArchitecturesTest, AnArchitectureIsFoundByAnyOfItsNames) {
  for (const char* name : {"sm_90", "90", "9.0", "h100"})
    EXPECT_STREQ(describe_gpu(name).key, "h100") << name;
  for (const char* name : {"sm_100", "10.0", "b200"})
    EXPECT_STREQ(describe_gpu(name).key, "b200") << name;
  EXPECT_EQ(architecture_of(describe_gpu("4090")), "sm_89");
}

TEST(ArchitecturesTest, WhatIsNotDescribedIsRefused) {
  for (const char* name : {"", "sm_", "sm_999999999999", "v100", "8,0"})
    EXPECT_THROW(describe_gpu(name), Error) << name;
}

TEST(ArchitecturesTest, OurTextsSayWhatTheSharedDescriptionsSay) {
  for (const auto& [gpu, file] :
       {std::pair{"t4", "sm75_t4"}, std::pair{"a100", "sm80_a100"},
        std::pair{"a6000", "sm86_a6000"}, std::pair{"4090", "sm89_4090"},
        std::pair{"6000ada", "sm89_6000ada"}, std::pair{"h100", "sm90_h100"},
        std::pair{"b200", "sm100_b200"}, std::pair{"5090", "sm120_5090"}}) {
    std::ifstream stream(shared_data() / "cudnn" / (std::string(file) + ".json"));
    EXPECT_EQ(nlohmann::json::parse(to_cudnn_json(describe_gpu(gpu))),
              nlohmann::json::parse(stream))
        << gpu;
  }
}

}  // namespace
}  // namespace memfathom
