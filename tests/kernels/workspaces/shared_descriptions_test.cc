// Compares our GPU descriptions with the shared ones.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "kernels/workspaces/architectures.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

TEST(ArchitecturesTest, DescriptionsEqualTheSharedOnes) {
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
