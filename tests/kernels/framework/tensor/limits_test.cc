// What bounds a run on the host: recycled memory, failures inside destructors, operations with
// absurdly many parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <vector>

#include "core/error.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recycled.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "kernels/memory/allocator/forwarding_allocator.h"

namespace memfathom {
namespace {

// The n-th free has no memory for the allocator's lists.
class FailingAllocator final : public ForwardingAllocator {
 public:
  using ForwardingAllocator::ForwardingAllocator;

  void free(const Allocation& allocation) override {
    if (fails) throw std::bad_alloc();
    ForwardingAllocator::free(allocation);
  }

  bool fails = false;
};

TEST(LimitsTest, AFreeWithoutMemoryFailsTheNextAllocationAndNotADestructor) {
  DryDevice device;
  BareAllocator bare;
  FailingAllocator allocator(bare);
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  std::optional<Tensor> tensor = session.empty({16}, DType::kFp32);
  allocator.fails = true;
  tensor.reset();
  allocator.fails = false;
  EXPECT_THROW(session.empty({16}, DType::kFp32), std::bad_alloc);
}

TEST(LimitsTest, AHundredMillionRowsAreRefusedBeforeTheyAreMade) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  const Tensor batch = session.empty({100'000'000, 4}, DType::kBf16);
  try {
    unbind(batch, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("100000000 rows"));
  }
}

TEST(LimitsTest, RecycledMemoryIsThatOfTheLastObjectOfItsSizeAndOfNoOther) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer sees every free";
#endif
  void* const small = take_recycled(40);
  void* const large = take_recycled(300);
  give_recycled(small, 40);
  give_recycled(large, 300);
  EXPECT_EQ(take_recycled(310), large);
  EXPECT_EQ(take_recycled(64), small);
  void* const beyond = take_recycled(5000);
  EXPECT_NE(beyond, nullptr);
  give_recycled(beyond, 5000);
  give_recycled(large, 310);
  give_recycled(small, 64);
}

TEST(LimitsTest, AGraphOfAMillionNodesIsDestroyedWithoutRecursion) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  Tensor x = session.empty({4}, DType::kFp32);
  x.set_requires_grad(true);
  for (int i = 0; i < 1'000'000; ++i) x = view(x, {4});
  x.reset();
  EXPECT_EQ(session.ledger().total(), 0);
}

TEST(LimitsTest, APeakKeepsWhatWasLiveAtItAndNotWhatCameAfter) {
  Ledger ledger;
  const ModuleIndex second = ledger.add_module("second");
  ledger.begin_phase("forward", 1);
  ledger.add(Component::kParameters, 0, 100);
  ledger.add(Component::kTemporaries, second, 30);
  ledger.move(Component::kTemporaries, Component::kActivations, second, 30);
  ledger.remove(Component::kActivations, second, 30);
  ledger.add(Component::kGradients, 0, 20);
  const PhaseRecord& phase = ledger.phases().back();
  const auto live = [&](ModuleIndex module, Component component) {
    return phase.live_at_peak[module][static_cast<std::size_t>(component)];
  };
  EXPECT_EQ(phase.allocated_peak, 130);
  EXPECT_EQ(live(0, Component::kParameters), 100);
  EXPECT_EQ(live(second, Component::kTemporaries), 30);
  EXPECT_EQ(live(second, Component::kActivations), 0);
  EXPECT_EQ(live(0, Component::kGradients), 0);
}

}  // namespace
}  // namespace memfathom
