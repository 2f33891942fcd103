#include "estimator/readers/oom_message.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace memfathom {
namespace {

Bytes gib(double count) { return Bytes{std::llround(count * 0x1p30)}; }
Bytes mib(double count) { return Bytes{std::llround(count * 0x1p20)}; }

TEST(OomMessageTest, ReadsTheWordingBeforePyTorch21) {
  const auto found = find_oom_message(
      "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 23.70 GiB total "
      "capacity; 20.50 GiB already allocated; 1.20 GiB free; 21.00 GiB reserved in total by "
      "PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, OomSource::kPytorch);
  EXPECT_EQ(found->gpu, 1);
  EXPECT_EQ(found->tried, gib(2));
  EXPECT_EQ(found->capacity, gib(23.7));
  EXPECT_EQ(found->allocated, gib(20.5));
  EXPECT_EQ(found->free, gib(1.2));
  EXPECT_EQ(found->reserved, gib(21));
  EXPECT_EQ(found->unallocated, gib(21) - gib(20.5));
  EXPECT_FALSE(found->in_process);
  EXPECT_EQ(found->tensors_needed(), gib(22.5));
}

constexpr const char* kToday =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
    "capacity of 23.69 GiB of which 12.75 MiB is free. Process 4711 has 10.25 GiB memory in use. "
    "Process 4712 has 1.00 GiB memory in use. Including non-PyTorch memory, this process has "
    "12.40 GiB memory in use. Of the allocated memory 11.80 GiB is allocated by PyTorch, and "
    "112.50 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
    "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

TEST(OomMessageTest, ReadsTodaysWordingWithOtherProcesses) {
  const auto found = find_oom_message(kToday);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tried, mib(20));
  EXPECT_EQ(found->capacity, gib(23.69));
  EXPECT_EQ(found->free, mib(12.75));
  EXPECT_EQ(found->in_others, gib(10.25) + gib(1));
  EXPECT_EQ(found->in_process, gib(12.4));
  EXPECT_EQ(found->allocated, gib(11.8));
  EXPECT_EQ(found->unallocated, mib(112.5));
  EXPECT_EQ(found->outside, gib(12.4) - gib(11.8) - mib(112.5));
}

TEST(OomMessageTest, ReadsTheMisspeltCapacityOfPyTorch21) {
  const auto found = find_oom_message(
      "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacty of 15.77 GiB of "
      "which 3.88 MiB is free.");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->capacity, gib(15.77));
}

TEST(OomMessageTest, ReadsAMessageThatALogWrapped) {
  std::string wrapped = kToday;
  for (std::size_t at = wrapped.find(' ', 60); at != std::string::npos && at + 60 < wrapped.size();
       at = wrapped.find(' ', at + 60))
    wrapped.replace(at, 1, "\n    ");
  const auto found = find_oom_message("[rank0]: " + wrapped);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unallocated, mib(112.5));
}

TEST(OomMessageTest, TakesTheLastMessageAndCountsThem) {
  const auto found = find_oom_message(
      "CUDA out of memory. Tried to allocate 1.00 GiB\nretry\nCUDA out of memory. Tried to "
      "allocate 2.00 GiB\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tried, gib(2));
  EXPECT_EQ(found->messages, 2);
  EXPECT_EQ(found->line, 3);
}

TEST(OomMessageTest, FindsItsOwnProcessAmongThoseOfAContainer) {
  const std::string figures =
      "Of the allocated memory 18.00 GiB is allocated by PyTorch, and 0.50 GiB is reserved by "
      "PyTorch but unallocated.";
  const std::string begin =
      "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 39.50 GiB of "
      "which 0.50 GiB is free. ";
  const auto alone = find_oom_message(begin + "Process 1 has 39.00 GiB memory in use. " + figures);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->in_process, gib(39));
  EXPECT_FALSE(alone->in_others);
  const auto two = find_oom_message(begin +
                                    "Process 1 has 20.00 GiB memory in use. Process 2 has 19.00 "
                                    "GiB memory in use. " +
                                    figures);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->in_process, gib(19));
  EXPECT_EQ(two->in_others, gib(20));
  const auto other = find_oom_message(begin + "Process 1 has 20.00 GiB memory in use. " + figures);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->in_process);
  EXPECT_EQ(other->in_others, gib(20));
}

TEST(OomMessageTest, KnowsOtherFrameworksAndLibraries) {
  const auto jax = find_oom_message(
      "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
      "allocate 8589934592 bytes.");
  ASSERT_TRUE(jax);
  EXPECT_EQ(jax->source, OomSource::kJax);
  EXPECT_EQ(jax->tried, gib(8));
  const auto vllm = find_oom_message(
      "ValueError: To serve at least one request with the models's max seq len (32768), (4.00 GiB "
      "KV cache is needed, which is larger than the available KV cache memory (2.10 GiB).");
  ASSERT_TRUE(vllm);
  EXPECT_EQ(vllm->source, OomSource::kVllm);
  EXPECT_EQ(vllm->tried, gib(4));
  EXPECT_EQ(vllm->free, gib(2.1));
  const auto early = find_oom_message(
      "RuntimeError: cuda runtime error (2) : out of memory at "
      "/pytorch/aten/src/THC/THCTensorMath.cu:35");
  ASSERT_TRUE(early);
  EXPECT_EQ(early->source, OomSource::kCuda);
  const auto cublas = find_oom_message(
      "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`");
  ASSERT_TRUE(cublas);
  EXPECT_EQ(cublas->source, OomSource::kCublas);
  EXPECT_FALSE(cublas->tried);
}

TEST(OomMessageTest, FindsNothingInAnOrdinaryLog) {
  EXPECT_FALSE(find_oom_message("step 1 loss 0.3\nout of luck\n"));
  EXPECT_FALSE(find_oom_message(""));
}

// Whatever is cut out of or put into a message, it is read or it is not; sizes stay bounded.
TEST(OomMessageTest, SurvivesDamagedMessages) {
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    std::string text = kToday;
    for (int changes = 0; changes < 6; ++changes) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = static_cast<char>(random() % 256);
      } else {
        text.erase(at, random() % 20);
      }
      if (text.empty()) text = "x";
    }
    const auto found = find_oom_message(text);
    if (found && found->tried) {
      EXPECT_LT(found->tried->count(), std::int64_t{1} << 60);
    }
  }
  const auto huge = find_oom_message("out of memory. Tried to allocate 99999999999999999999 GiB.");
  ASSERT_TRUE(huge);
  EXPECT_FALSE(huge->tried);
}

}  // namespace
}  // namespace memfathom
