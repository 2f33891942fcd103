#include "kernels/framework/tensor/engine.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "core/error.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/checkpoint.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/memory/allocator/bare_allocator.h"

namespace memfathom {
namespace {

class EngineTest : public testing::Test {
 protected:
  Tensor leaf(const Shape& shape) {
    Tensor made = session_.empty(shape, DType::kFp32);
    made.set_requires_grad(true);
    return made;
  }
  std::int64_t live() { return allocator_.statistics().allocated_bytes.all.current; }

  FrameworkPolicy policy_ = [] {
    FrameworkPolicy policy;
    policy.count_workspaces = false;
    return policy;
  }();
  DryDevice device_;
  BareAllocator allocator_;
  Session session_{device_, allocator_, device_.workspaces(), policy_};
};

TEST_F(EngineTest, SavesAnOperandOfAProductOnlyWhenTheOtherIsTrainable) {
  const Tensor weight = leaf({64, 64});
  Tensor frozen = session_.empty({64, 64}, DType::kFp32);
  const std::int64_t before = live();
  Tensor product = mul(frozen, weight);
  frozen.reset();  // kept alive by the tape: weight's gradient needs it
  EXPECT_EQ(live() - before, 64 * 64 * 4);
  product.reset();
  EXPECT_EQ(live(), before - std::int64_t{64} * 64 * 4);
}

TEST_F(EngineTest, StoresTheFirstGradientOfALeafAndAddsTheSecondInPlace) {
  const Tensor x = session_.empty({32, 16}, DType::kFp32);
  const Tensor weight = leaf({8, 16});
  run_backward(sum_all(linear(x, weight)));
  ASSERT_TRUE(weight.grad());
  const std::int64_t with_gradient = live();
  run_backward(sum_all(linear(x, weight)));
  EXPECT_EQ(live(), with_gradient);
}

TEST_F(EngineTest, EachOfMoreThan256OutputsHasAGradientOfItsOwn) {
  const std::vector<Tensor> rows = unbind(leaf({300, 4}), 0);
  EXPECT_EQ(gradient_edge(rows[255]).input, 255U);
  EXPECT_EQ(gradient_edge(rows[256]).input, 256U);
  EXPECT_EQ(gradient_edge(rows[299]).input, 299U);
}

TEST_F(EngineTest, ARetainedGraphCanBeRunBackwardAgain) {
  const Tensor x = session_.empty({32, 16}, DType::kFp32);
  const Tensor weight = leaf({16, 16});
  const Tensor loss = sum_all(pow_scalar(linear(x, weight), 2));
  const std::int64_t with_graph = live();
  run_backward(loss, GraphRetention::kRetained);
  EXPECT_EQ(live(), with_graph + std::int64_t{16} * 16 * 4);  // the gradient
  run_backward(loss, GraphRetention::kFreed);
  EXPECT_LT(live(), with_graph);
}

TEST_F(EngineTest, AddsASecondGradientInPlaceUnlessTheFirstIsAView) {
  // Twice the same table: as a factor its gradient arrives transposed, a view that holds its base.
  const Tensor table = leaf({256, 64});
  const Tensor x = session_.empty({4, 64}, DType::kFp32);
  const auto most_during = [&](const Tensor& loss) {
    allocator_.reset_peaks();
    const std::int64_t before = live();
    run_backward(loss);
    table.impl()->grad.reset();
    return allocator_.statistics().allocated_bytes.all.peak - before;
  };
  const std::int64_t tables = std::int64_t{256} * 64 * 4;
  const std::int64_t twice = most_during(sum_all(add(linear(x, table), linear(x, table))));
  EXPECT_GE(twice, 3 * tables);  // two gradients and their sum
  const std::int64_t in_place =
      most_during(sum_all(add(mul_scalar(table, 2), mul_scalar(table, 3))));
  EXPECT_LT(in_place, 3 * tables);
}

TEST_F(EngineTest, BackwardReleasesSavedTensors) {
  const Tensor weight = leaf({128, 128});
  const Tensor x = session_.empty({256, 128}, DType::kFp32);
  const std::int64_t before = live();
  {
    Tensor t = linear(x, weight);
    t = activate(Activation::kGelu, t);
    const Tensor loss = sum_all(t);
    t.reset();
    run_backward(loss);
  }
  EXPECT_EQ(live() - before, 128 * 128 * 4);  // the gradient alone
}

TEST_F(EngineTest, CheckpointSavesItsInputAndRecomputesTheRest) {
  const Tensor first = leaf({128, 128});
  const Tensor second = leaf({128, 128});
  const auto segment = [&](const Tensor& input) {
    Tensor t = linear(input, first);
    t = activate(Activation::kGelu, t);
    return linear(t, second);
  };
  const Tensor x = session_.empty({256, 128}, DType::kFp32);
  const std::int64_t before = live();
  const Tensor kept = checkpoint(segment, x);
  EXPECT_EQ(live() - before, 256 * 128 * 4);  // the result; nothing inside
  run_backward(sum_all(kept));
  EXPECT_TRUE(first.grad());
  EXPECT_TRUE(second.grad());
}

TEST_F(EngineTest, RefusesBackwardWithoutTrainableTensors) {
  const Tensor x = session_.empty({4}, DType::kFp32);
  EXPECT_THROW(run_backward(sum_all(x)), Error);
}

TEST_F(EngineTest, RefusesBackwardFromNoTensors) {
  const std::span<const Tensor> none;
  EXPECT_THROW(run_backward(none, none), Error);
}

TEST_F(EngineTest, RefusesAReentrantCheckpointWithDetachedOutputs) {
  const Tensor x = leaf({4});
  const Tensor out = checkpoint_reentrant([](const Tensor& input) { return input.detach(); }, x);
  EXPECT_THROW(run_backward(sum_all(out)), Error);
}

TEST_F(EngineTest, SharesAnInputWithAHistoryBetweenReentrantCheckpoints) {
  const Tensor weight = leaf({16, 16});
  const Tensor shared = activate(Activation::kGelu, weight);
  const CheckpointedMultiFunction segment = [](std::span<const Tensor> given) {
    return std::vector<Tensor>{linear(given[0], given[1])};
  };
  Tensor x = leaf({8, 16});
  for (int i = 0; i < 3; ++i) {
    const Tensor inputs[] = {x, shared};
    x = checkpoint_reentrant(segment, inputs).front();
  }
  run_backward(sum_all(x));
  EXPECT_TRUE(weight.grad());
}

TEST_F(EngineTest, ReleasesAChainOfAHundredThousandNodesWithoutRecursion) {
  const Tensor x = leaf({1});
  Tensor t = x;
  for (int i = 0; i < 100000; ++i) t = add_scalar(t, 1);
  run_backward(sum_all(t));
  t.reset();
  EXPECT_TRUE(x.grad());
}

}  // namespace
}  // namespace memfathom
