// Segments that are played: how many run, that the allocator sees no difference, and what is
// refused.
#include "kernels/framework/tensor/segment_replay.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/memory/allocator/caching_allocator.h"

namespace memfathom {
namespace {

constexpr std::int64_t kWidth = 300;

// x + weight * silu(x), as often as there are weights.
class Tower {
 public:
  Tower(Session& session, std::size_t segments, bool trains) : session_(session) {
    const ComponentScope scope(session, Component::kParameters);
    for (std::size_t i = 0; i < segments; ++i) {
      parameters_.push_back({session.empty({kWidth, kWidth}, DType::kFp32)});
      parameters_.back().front().set_requires_grad(trains);
    }
  }

  // `odd`: a segment that does more than the others; absent: all are alike.
  Tensor forward(const Tensor& input, bool replays, std::size_t odd = ~std::size_t{0}) {
    const auto replay = std::make_shared<SegmentReplay>(session_);
    Tensor x = input;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const SegmentParts parts{{}, &parameters_[i]};
      const SegmentFunction run = [&](const Tensor& given) {
        ++runs;
        Tensor y = linear(activate(Activation::kSilu, given), parameters_[i].front());
        if (i == odd) y = activate(Activation::kSilu, y);
        return add(given, y);
      };
      const bool is_last = i + 1 == parameters_.size();
      if (!replays) {
        x = run(x);
      } else if (!replay->plays(x, parts)) {
        x = replay->record(x, parts, run);
      } else if (is_last && replay->has_gradients()) {
        x = replay->record_last(x, parts, run);
      } else {
        x = replay->play(x, parts);
      }
    }
    return x;
  }

  const Tensor& gradient(std::size_t i) const { return parameters_[i].front().grad(); }
  int runs = 0;

 private:
  Session& session_;
  std::vector<std::vector<Tensor>> parameters_;
};

struct Machine {
  DryDevice device;
  CachingAllocator allocator{device.memory()};
  Session session{device, allocator, device.workspaces(), FrameworkPolicy{}};
};

Tensor leaf(Session& session) {
  Tensor x = session.empty({16, kWidth}, DType::kFp32);
  x.set_requires_grad(true);
  return x;
}

TEST(SegmentReplayTest, WithoutGradientsOneSegmentRuns) {
  std::vector<std::string> memory;
  for (const bool replays : {false, true}) {
    Machine machine;
    Tower tower(machine.session, 6, false);
    const NoGrad no_grad(machine.session);
    const Tensor y = tower.forward(machine.session.empty({16, kWidth}, DType::kFp32), replays);
    EXPECT_EQ(y.shape(), (Shape{16, kWidth}));
    EXPECT_EQ(tower.runs, replays ? 1 : 6);
    memory.push_back(to_json(machine.allocator.snapshot()));
  }
  EXPECT_EQ(memory[0], memory[1]);
}

TEST(SegmentReplayTest, WithGradientsTheFirstAndTheLastRunAndAllGetTheirs) {
  std::vector<std::string> memory;
  for (const bool replays : {false, true}) {
    Machine machine;
    Tower tower(machine.session, 6, true);
    Tensor y = tower.forward(leaf(machine.session), replays);
    memory.push_back(to_json(machine.allocator.snapshot()));
    // The gradient of a sum alone would be a view, and no segment but the last gets one.
    run_backward(sum(activate(Activation::kSilu, y), {0, 1}, false), GraphRetention::kFreed);
    y.reset();
    EXPECT_EQ(tower.runs, replays ? 2 : 6);
    for (std::size_t i = 0; i < 6; ++i) {
      ASSERT_TRUE(tower.gradient(i)) << i;
      EXPECT_EQ(tower.gradient(i).shape(), (Shape{kWidth, kWidth}));
      EXPECT_EQ(tower.gradient(i).impl()->storage->component(), Component::kGradients);
    }
    memory.push_back(to_json(machine.allocator.snapshot()));
  }
  EXPECT_EQ(memory[0], memory[2]);
  EXPECT_EQ(memory[1], memory[3]);
}

TEST(SegmentReplayTest, ALastSegmentThatDoesSomethingElseIsNoticed) {
  Machine machine;
  Tower tower(machine.session, 4, true);
  EXPECT_THROW(tower.forward(leaf(machine.session), true, 3), SegmentsDiffer);
}

TEST(SegmentReplayTest, ABackwardPassWithoutTheLastSegmentIsNoticed) {
  Machine machine;
  Tower tower(machine.session, 3, true);
  const auto replay = std::make_shared<SegmentReplay>(machine.session);
  const std::vector<Tensor> none;
  const SegmentParts parts{{}, &none};
  const SegmentFunction run = [](const Tensor& x) { return activate(Activation::kSilu, x); };
  const Tensor first = replay->record(leaf(machine.session), parts, run);
  Tensor y;
  // The input of the second has a history and that of the first has none: both require a gradient.
  ASSERT_TRUE(replay->plays(first, parts));
  y = replay->play(first, parts);
  EXPECT_THROW(run_backward(sum(y, {0, 1}, false), GraphRetention::kFreed), SegmentsDiffer);
}

TEST(SegmentReplayTest, AnotherInputIsNotPlayed) {
  Machine machine;
  Tower tower(machine.session, 1, false);
  const auto replay = std::make_shared<SegmentReplay>(machine.session);
  const std::vector<Tensor> none;
  const SegmentParts parts{{}, &none};
  const NoGrad no_grad(machine.session);
  replay->record(machine.session.empty({16, kWidth}, DType::kFp32), parts,
                 [](const Tensor& x) { return activate(Activation::kSilu, x); });
  EXPECT_TRUE(replay->plays(machine.session.empty({16, kWidth}, DType::kFp32), parts));
  EXPECT_FALSE(replay->plays(machine.session.empty({17, kWidth}, DType::kFp32), parts));
  EXPECT_FALSE(replay->plays(machine.session.empty({16, kWidth}, DType::kBf16), parts));
}

TEST(SegmentReplayTest, ASegmentWhoseTensorsStayElsewhereIsNotPlayed) {
  Machine machine;
  const NoGrad no_grad(machine.session);
  const auto replay = std::make_shared<SegmentReplay>(machine.session);
  const std::vector<Tensor> none;
  const SegmentParts parts{{}, &none};
  std::vector<Tensor> collected;
  const Tensor x = machine.session.empty({16, kWidth}, DType::kFp32);
  replay->record(x, parts, [&](const Tensor& given) {
    collected.push_back(activate(Activation::kSilu, given));
    return activate(Activation::kSilu, given);
  });
  EXPECT_FALSE(replay->plays(x, parts));
}

}  // namespace
}  // namespace memfathom
