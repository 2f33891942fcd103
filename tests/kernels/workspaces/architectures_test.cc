#include "kernels/workspaces/architectures.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "core/error.h"
#include "core/gpus.h"

namespace memfathom {
namespace {

TEST(ArchitecturesTest, FindsAnArchitectureByAnyOfItsNames) {
  for (const char* name : {"sm_90", "90", "9.0", "h100"})
    EXPECT_STREQ(describe_gpu(name).key, "h100") << name;
  for (const char* name : {"sm_100", "10.0", "b200"})
    EXPECT_STREQ(describe_gpu(name).key, "b200") << name;
  EXPECT_EQ(architecture_of(describe_gpu("4090")), "sm_89");
}

TEST(ArchitecturesTest, RefusesAnUnknownArchitecture) {
  for (const char* name : {"", "sm_", "sm_999999999999", "v100", "8,0"})
    EXPECT_THROW(describe_gpu(name), Error) << name;
}

TEST(ArchitecturesTest, UsesTheNearestArchitectureIfADescriptionIsMissing) {
  struct Case {
    int capability;
    const char* nearest;
  };
  for (const Case& c : std::initializer_list<Case>{{50, "sm_75"},
                                                   {52, "sm_75"},
                                                   {60, "sm_75"},
                                                   {61, "sm_75"},
                                                   {62, "sm_75"},
                                                   {70, "sm_75"},
                                                   {72, "sm_75"},
                                                   {75, "sm_75"},
                                                   {80, "sm_80"},
                                                   {86, "sm_86"},
                                                   {87, "sm_86"},
                                                   {89, "sm_89"},
                                                   {90, "sm_90"},
                                                   {100, "sm_100"},
                                                   {101, "sm_100"},
                                                   {103, "sm_100"},
                                                   {110, "sm_100"},
                                                   {120, "sm_120"},
                                                   {121, "sm_120"}}) {
    const NearestArchitecture found = nearest_known_architecture(c.capability);
    EXPECT_EQ(found.architecture, c.nearest) << c.capability;
    EXPECT_EQ(found.differs, describe_gpu(c.nearest).compute != c.capability) << c.capability;
    EXPECT_EQ(architecture_of(describe_gpu(found.architecture)), c.nearest);
  }
}

TEST(ArchitecturesTest, EveryDescribedArchitectureIsItsOwnNearest) {
  for (const GpuDescription& gpu : known_gpus()) {
    const NearestArchitecture found = nearest_known_architecture(gpu.compute);
    EXPECT_EQ(found.architecture, architecture_of(gpu));
    EXPECT_FALSE(found.differs);
  }
}

TEST(ArchitecturesTest, EveryKnownGpuIsDescribedOrListedHere) {
  // Without a description of their own: the answer names the architecture that stands in.
  const std::set<std::string_view> answered_by_another{"sm_60", "sm_61", "sm_70", "sm_103"};
  for (const Gpu& gpu : gpus_by_memory()) {
    if (gpu.vendor != "nvidia") continue;
    EXPECT_EQ(nearest_known_architecture(gpu.compute_capability()).differs,
              answered_by_another.contains(gpu.architecture))
        << gpu.name;
  }
}

}  // namespace
}  // namespace memfathom
