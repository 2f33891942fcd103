// The reference and the cpu device against PyTorch's own results for a table of cases.
#include <gtest/gtest.h>

#include "kernels/devices/cpu/cpu_device.h"
#include "tests/kernels/devices/cpu/run_torch_case.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::TorchCase;

// Conversions are exact; 16-bit results may differ in their last bit, fp32 sums by their order.
double tolerance(const TorchCase& c, const HostTensor& result) {
  if (c.kind == "copy") return 0;
  switch (result.operand().dtype) {
    case DType::kFp16: return 1e-3;
    case DType::kBf16: return 8e-3;
    default: return 5e-6;
  }
}

class TorchCasesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TorchCasesTest, ReferenceAndCpuDeviceMatchPyTorch) {
  CpuDevice cpu{Bytes{1 << 20}};
  testing::ReferenceRunner reference;
  const std::vector<TorchCase> cases = testing::read_torch_cases(GetParam());
  EXPECT_GT(cases.size(), 5u);
  for (const TorchCase& c : cases) {
    const testing::Results by_reference = run_torch_case(c, reference),
                           by_cpu = run_torch_case(c, cpu);
    for (const auto& [key, expected] : c.out) {
      EXPECT_LE(distance(by_reference.at(key), expected), tolerance(c, expected))
          << c.name << ": " << key << " of the reference";
      EXPECT_LE(distance(by_cpu.at(key), expected), tolerance(c, expected))
          << c.name << ": " << key << " of the cpu device";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, TorchCasesTest,
                         ::testing::Values("elementwise", "rows", "linear", "planes", "optimizers"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace memfathom
