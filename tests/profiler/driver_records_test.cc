#include "profiler/driver_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace memfathom {
namespace {

using namespace literals;
using ::testing::ElementsAre;

constexpr DriverMemory kDevice = DriverMemory::kDevice;

DriverRecord allocated(std::uint64_t at, std::uint64_t address, Bytes bytes, int module = 0,
                       DriverMemory memory = kDevice) {
  return {at, true, memory, module, address, bytes};
}
DriverRecord released(std::uint64_t at, std::uint64_t address) {
  return {at, false, kDevice, 1, address, Bytes{}};
}

// Readings at 10, 20 and 30 ns.
const std::vector<StageReading> kStages{
    {"baseline", 100_MiB}, {"context", 600_MiB}, {"steps", 900_MiB}};
DriverRecords recorded(std::vector<DriverRecord> records) {
  return {.version = 130001,
          .modules = {"/usr/lib/libcufft.so.12", "/usr/lib/libcudart.so.13"},
          .marks = {10, 20, 30},
          .records = std::move(records)};
}

TEST(DriverRecordsTest, WhatIsHeldAtTheReadingsAddsNothing) {
  EXPECT_EQ(beyond_readings(recorded({}), kStages), 0_MiB);
  EXPECT_EQ(beyond_readings(recorded({allocated(22, 1, 300_MiB)}), kStages), 0_MiB);
  EXPECT_EQ(beyond_readings(recorded({allocated(12, 1, 300_MiB), released(22, 1)}), kStages),
            300_MiB)
      << "it was held when the last interval began";
}

TEST(DriverRecordsTest, APeakBetweenTwoReadingsLiesAboveTheLast) {
  EXPECT_EQ(beyond_readings(
                recorded({allocated(22, 1, 200_MiB), allocated(23, 2, 64_MiB), released(24, 2)}),
                kStages),
            64_MiB);
  // Earlier, when less was in use: 600 + 350 is 50 above the 900 in the end.
  EXPECT_EQ(beyond_readings(recorded({allocated(12, 1, 350_MiB), released(13, 1)}), kStages),
            50_MiB);
  EXPECT_EQ(beyond_readings(recorded({allocated(12, 1, 250_MiB), released(13, 1)}), kStages),
            0_MiB);
  EXPECT_EQ(beyond_readings(recorded({allocated(31, 1, 999_MiB), released(32, 1)}), kStages), 0_MiB)
      << "after the last reading";
}

TEST(DriverRecordsTest, OnlyDeviceMemoryCounts) {
  for (const DriverMemory memory :
       {DriverMemory::kPinned, DriverMemory::kPageable, DriverMemory::kManaged,
        DriverMemory::kUnknown, DriverMemory::kPool})
    EXPECT_EQ(
        beyond_readings(recorded({allocated(22, 1, 64_MiB, 0, memory), released(24, 1)}), kStages),
        0_MiB);
  for (const DriverMemory memory : {DriverMemory::kArray, DriverMemory::kDeviceStatic}) {
    DriverRecord end = released(24, 1);
    end.memory = memory;
    EXPECT_EQ(beyond_readings(recorded({allocated(22, 1, 64_MiB, 0, memory), end}), kStages),
              64_MiB);
  }
}

TEST(DriverRecordsTest, IncompleteRecordsSayNothingAboutPeaks) {
  const DriverRecords whole = recorded({allocated(22, 1, 64_MiB), released(24, 1)});
  ASSERT_EQ(beyond_readings(whole, kStages), 64_MiB);
  DriverRecords dropped = whole;
  dropped.dropped = 1;
  EXPECT_EQ(beyond_readings(dropped, kStages), 0_MiB);
  DriverRecords missing = whole;
  missing.missing = "no NVIDIA driver is loaded";
  EXPECT_EQ(beyond_readings(missing, kStages), 0_MiB);
  DriverRecords unmarked = whole;
  unmarked.marks.pop_back();
  EXPECT_EQ(beyond_readings(unmarked, kStages), 0_MiB);
}

TEST(DriverRecordsTest, AReleaseIsThatOfItsAllocation) {
  // An address that is reused without a recorded release is held once.
  EXPECT_EQ(
      beyond_readings(recorded({allocated(22, 1, 64_MiB), allocated(23, 1, 32_MiB)}), kStages),
      32_MiB);
  EXPECT_EQ(beyond_readings(recorded({released(22, 7), allocated(23, 1, 64_MiB)}), kStages), 0_MiB)
      << "what was allocated before the recording began";
  EXPECT_THAT(uses_by_module(recorded({allocated(12, 1, 64_MiB), allocated(13, 2, 32_MiB),
                                       released(14, 1), allocated(15, 3, 16_MiB, -1)})),
              ElementsAre(ModuleUse{"libcufft.so.12", kDevice, 2, 96_MiB, 32_MiB},
                          ModuleUse{"", kDevice, 1, 16_MiB, 16_MiB}));
}

TEST(DriverRecordsTest, TheTableHasTimesStagesAndModules) {
  const std::string table = driver_table(
      "fno/w64", recorded({allocated(1010, 0x7f00, 64_MiB), released(12, 0x7f00)}), kStages);
  EXPECT_EQ(table,
            "fno/w64,1.000,the end,alloc,device,67108864,0x7f00,\"/usr/lib/libcufft.so.12\"\n"
            "fno/w64,0.002,context,free,device,0,0x7f00,\"/usr/lib/libcudart.so.13\"\n");
}

TEST(DriverRecordsTest, TravelsAsJsonAndIsSortedByTime) {
  DriverRecords records = recorded({allocated(12, 1, 64_MiB), released(24, 1)});
  records.dropped = 3;
  records.missing = "why";
  EXPECT_EQ(driver_records_from_json(to_json(records)), records);
  std::swap(records.records[0], records.records[1]);
  EXPECT_EQ(driver_records_from_json(to_json(records)).records.front().nanoseconds, 12U);
}

// What another process wrote.
TEST(DriverRecordsTest, ForeignNumbersAreNoIndices) {
  nlohmann::json document = to_json(recorded({allocated(12, 1, 64_MiB)}));
  document["records"][0][2] = 99;
  document["records"][0][3] = 99;
  const DriverRecords read = driver_records_from_json(document);
  EXPECT_EQ(read.records.front().memory, DriverMemory::kUnknown);
  EXPECT_EQ(read.records.front().module, -1);
  document["records"][0].erase(5);
  EXPECT_THROW(driver_records_from_json(document), nlohmann::json::exception);
}

}  // namespace
}  // namespace memfathom
