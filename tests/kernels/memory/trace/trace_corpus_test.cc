// Runs trace_fuzz over its corpus, and over every prefix and some damaged copies of each file.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

TEST(TraceCorpusTest, ReadsOrRefusesEveryFilePrefixAndDamagedCopy) {
  std::mt19937 random(1);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MEMFATHOM_CORPUS)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    ASSERT_FALSE(bytes.empty());
    run(bytes);
    for (std::size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 400) {
      run(bytes.substr(0, length));
    }
    for (int copy = 0; copy < 300; ++copy) {
      std::string damaged = bytes;
      for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      run(damaged);
    }
    ++files;
  }
  EXPECT_GE(files, 1);
}

}  // namespace
