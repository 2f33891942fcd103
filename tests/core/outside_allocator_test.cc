#include "core/outside_allocator.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

TEST(OutsideAllocatorTest, StacksBeforeLazyLoadingAreEager) {
  EXPECT_EQ(module_loading("", ""), ModuleLoading::kLazy);
  EXPECT_EQ(module_loading("2.1.1", ""), ModuleLoading::kLazy);
  EXPECT_EQ(module_loading("1.13", ""), ModuleLoading::kLazy);
  EXPECT_EQ(module_loading("1.12.1", ""), ModuleLoading::kEager);
  EXPECT_EQ(module_loading("1.13", "11.6"), ModuleLoading::kEager);
}

TEST(OutsideAllocatorTest, AnUnspecifiedReleaseIsTheCurrentOne) {
  EXPECT_EQ(release_series(""), "2.10");
  EXPECT_EQ(release_series("2.3.1"), "2.2");
  EXPECT_EQ(release_series("1.13"), "");
}

TEST(OutsideAllocatorTest, AddsTheLineAndTheEffectsOfTheGpu) {
  Calibration published;
  const auto add = [&](std::string_view name, double value) {
    published.coefficients.push_back(
        {std::string(name), value, 0, "bytes", Source::kPublished, false, 1});
  };
  add(outside::kBare, 20e6);
  add(outside::kBarePerKilothread, 2e6);
  add(outside::kComputed, 30e6);
  add(outside::kEager, 900e6);
  add(outside::architecture_effect("sm_90"), 0.1);
  OutsideTarget target{"sm_80", 108, 216, "2.10", ModuleLoading::kLazy};
  EXPECT_DOUBLE_EQ(bytes_outside(published, target), 482e6);
  target.loading = ModuleLoading::kEager;
  EXPECT_DOUBLE_EQ(bytes_outside(published, target), 1352e6);
  const OutsideTarget hopper{"sm_90", 132, 264, "2.10", ModuleLoading::kLazy};
  EXPECT_DOUBLE_EQ(bytes_outside(published, hopper), 578e6 + 0.1 * outside::typical_bytes(264));
}

}  // namespace
}  // namespace memfathom
