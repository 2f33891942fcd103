#include "estimator/readers/nvidia_smi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace memfathom {
namespace {

constexpr const char* kTable = R"(Wed Nov 18 10:00:00 2026
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|=========================================+======================+======================|
|   0  NVIDIA RTX 6000 Ada Gene...    Off | 00000000:01:00.0 Off |                  Off |
| 30%   45C    P2              70W / 300W |  20790MiB / 49140MiB |      0%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
|   1  NVIDIA RTX 6000 Ada Gene...    On  | 00000000:02:00.0 Off |                  Off |
| 30%   45C    P2              70W / 300W |      3MiB / 49140MiB |      0%      Default |
+-----------------------------------------+----------------------+----------------------+
| Processes:                                                                            |
|    0   N/A  N/A      2871      C   python                                    20780MiB |
)";

TEST(NvidiaSmiTest, ReadsTheTable) {
  const std::vector<SeenGpu> gpus = parse_nvidia_smi(kTable, "smi.txt");
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].used, Bytes{std::int64_t{20790} << 20});
  EXPECT_EQ(gpus[0].total, Bytes{std::int64_t{49140} << 20});
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(name_of(gpus[0]), "rtx-6000-ada");
}

TEST(NvidiaSmiTest, TheGpuWithLeastMemoryLeftLimitsTheJob) {
  const std::vector<SeenGpu> gpus = parse_nvidia_smi(kTable, "smi.txt");
  EXPECT_EQ(limiting_gpu(gpus, std::nullopt, "smi.txt").index, 0);
  EXPECT_EQ(limiting_gpu(gpus, 1, "smi.txt").index, 1);
  EXPECT_THROW(limiting_gpu(gpus, 7, "smi.txt"), Error);
}

TEST(NvidiaSmiTest, ReadsTheQueryInAnyOrderOfColumns) {
  const std::vector<SeenGpu> gpus = parse_nvidia_smi(
      "name, memory.used [MiB], index, memory.total [MiB]\n"
      "NVIDIA A100-SXM4-80GB, 1024 MiB, 3, 81920 MiB\nNVIDIA A100-SXM4-80GB, 5, 4, 81920\n",
      "smi.csv");
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].index, 3);
  EXPECT_EQ(gpus[0].used, Bytes{std::int64_t{1024} << 20});
  EXPECT_EQ(gpus[1].used, Bytes{std::int64_t{5} << 20});
  EXPECT_EQ(name_of(gpus[0]), "a100-80gb");
}

TEST(NvidiaSmiTest, RefusesATextWithoutAGpu) {
  for (const char* text : {"", "No devices were found\n", "a, b\n1, 2\n", "memory.used\nN/A\n",
                           "| 0 x Off |\n| 99999999999MiB / 1MiB |\n"}) {
    EXPECT_THROW(parse_nvidia_smi(text, "smi.txt"), Error) << text;
  }
}

}  // namespace
}  // namespace memfathom
