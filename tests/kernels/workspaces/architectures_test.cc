#include "kernels/workspaces/architectures.h"

#include <gtest/gtest.h>

#include "core/error.h"

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

}  // namespace
}  // namespace memfathom
