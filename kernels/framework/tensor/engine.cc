#include "kernels/framework/tensor/engine.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/framework/tensor/elementwise.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

bool only_holder(const Tensor& tensor) {
  return tensor.ref()->use_count() == 1 && tensor.impl()->storage->use_count() == 1;
}

// Adds to a leaf's gradient. A first gradient with no other owner and the leaf's layout is taken
// without a copy.
struct AccumulateGrad {
  explicit AccumulateGrad(Ref<TensorImpl> tensor) : leaf(std::move(tensor)) {}
  AccumulateGrad(AccumulateGrad&&) = default;
  ~AccumulateGrad() {
    if (leaf) leaf->accumulator = nullptr;
  }

  void operator()(Backward& b) const {
    {
      const Tensor incoming = b.take_gradient();
      if (!incoming) return;
      accumulate(b.session(), incoming);
    }
    if (StorageObserver* storage_observer = leaf->storage->storage_observer())
      storage_observer->gradient_ready(*leaf);
  }

  void accumulate(Session& session, const Tensor& incoming) const {
    if (leaf->grad) {
      add_into(leaf->grad, incoming);
      return;
    }
    const bool same_layout = !is_dense(leaf->shape, leaf->strides) ||
                             incoming.strides() == leaf->strides ||
                             (Tensor(leaf).is_contiguous() && incoming.is_contiguous());
    if (incoming.ref()->use_count() == 1 && same_layout) {
      leaf->grad = incoming.detach();
    } else {
      Tensor copy = session.empty_strided(leaf->shape, leaf->strides, incoming.dtype());
      copy_into(copy, incoming);
      leaf->grad = std::move(copy);
    }
    // A leaf created in the forward pass is not a parameter: its gradient counts as an ordinary
    // tensor.
    if (leaf->storage->component() != Component::kTemporaries)
      leaf->grad.impl()->storage->set_component(Component::kGradients);
  }

  Ref<TensorImpl> leaf;
};

// One run of the engine. Runs nest (reentrant checkpoints), so a node's slot is restored when the
// run ends.
class Run {
 public:
  // `expected`: about how many nodes there are.
  Run(Session& session, GraphRetention graph, std::size_t expected)
      : session_(session), graph_(graph) {
    states_.reserve(expected);
  }
  ~Run() {
    for (const State& state : states_) state.node->slot = state.slot_before;
  }

  void go(std::span<const Edge> roots, std::span<const Tensor> gradients) {
    for (const Edge& root : roots) count_dependencies(root.node);
    for (std::size_t i = 0; i < roots.size(); ++i) deliver(roots[i], gradients[i], false);
    while (!ready_.empty()) {
      State& next = states_[ready_.top().slot];
      ready_.pop();
      evaluate(next);
    }
  }
  std::size_t nodes() const { return states_.size(); }

 private:
  struct State {
    State(TapeNode* of, std::int32_t before) : node(of), slot_before(before) {}

    Ref<TapeNode> node;  // lives until the run ends
    std::int32_t slot_before;
    std::uint32_t dependencies = 0;
    std::uint32_t views = 0;  // a bit for each gradient that is a view
    bool has_gradients = false;
    SmallVector<Tensor, 2> gradients;
  };
  struct Entry {
    std::uint64_t sequence;
    std::size_t slot;
    bool operator<(const Entry& other) const { return sequence < other.sequence; }
  };

  State& state(TapeNode& node) { return states_[static_cast<std::size_t>(node.slot)]; }

  bool visit(TapeNode* node) {
    if (node->slot >= 0 && static_cast<std::size_t>(node->slot) < states_.size() &&
        state(*node).node.get() == node)
      return false;
    states_.emplace_back(node, node->slot);
    node->slot = static_cast<std::int32_t>(states_.size() - 1);
    return true;
  }

  // The root itself waits for its given gradient.
  void count_dependencies(const Ref<TapeNode>& root) {
    std::vector<TapeNode*> pending;
    if (visit(root.get())) pending.push_back(root.get());
    ++state(*root).dependencies;
    while (!pending.empty()) {
      TapeNode* node = pending.back();
      pending.pop_back();
      for (const Edge& edge : node->edges) {
        if (!edge.node) continue;
        if (visit(edge.node.get())) pending.push_back(edge.node.get());
        ++state(*edge.node).dependencies;
      }
    }
  }

  // Gradients are reduced and cast to the extents and type of the forward output.
  void fit_results(TapeNode& node, Backward& backward) {
    for (std::size_t i = 0; i < node.edges.size(); ++i) {
      Tensor& gradient = backward.results[i];
      const Edge& edge = node.edges[i];
      if (!edge.node || !gradient) continue;
      const OutputMeta& meta = edge.node->outputs[edge.input];
      if (!(gradient.shape() == meta.shape)) gradient = sum_to_shape(gradient, meta.shape);
      if (gradient.dtype() != meta.dtype)
        gradient = elementwise(Elementwise::kCopy, meta.dtype, {&gradient});
    }
  }

  void evaluate(State& state) {
    TapeNode& node = *state.node;
    const Scoped<ModuleIndex> module(session_.module, node.module);
    Backward backward(session_, node, state.gradients);
    node.apply(backward);
    fit_results(node, backward);
    std::uint32_t views = 0;  // a bit for each result that is a view
    for (std::size_t i = 0; i < backward.results.size(); ++i) {
      if (is_view_of(backward.results[i], state.gradients)) views |= bit(i);
    }
    state.gradients.clear();
    if (graph_ == GraphRetention::kFreed) node.release();
    for (std::size_t i = 0; i < node.edges.size(); ++i) {
      if (node.edges[i].node)
        deliver(node.edges[i], std::move(backward.results[i]), (views & bit(i)) != 0);
    }
  }

  // A node is ready once it has its last gradient.
  void deliver(const Edge& edge, Tensor gradient, bool is_view) {
    State& next = state(*edge.node);
    if (!next.has_gradients) {
      next.has_gradients = true;
      next.gradients.resize(edge.node->outputs.size());
    }
    accumulate(next, edge.input, std::move(gradient), is_view);
    if (--next.dependencies == 0)
      ready_.push({edge.node->sequence(), static_cast<std::size_t>(edge.node->slot)});
  }

  // A gradient that is only a view of another (a transposed weight's, a folded input's) shares its
  // base, as in PyTorch; a buffer with two owners is never accumulated into.
  static bool is_view_of(const Tensor& result, const SmallVector<Tensor, 2>& gradients) {
    if (!result) return false;
    return std::any_of(gradients.begin(), gradients.end(), [&](const Tensor& gradient) {
      return gradient && gradient.impl() != result.impl() && result.shares_storage_with(gradient);
    });
  }

  static std::uint32_t bit(std::size_t index) { return index < 32 ? 1U << index : 0U; }

  void accumulate(State& state, std::uint32_t input, Tensor incoming, bool is_view) {
    if (!incoming) return;
    Tensor& held = state.gradients[input];
    if (!held) {
      held = std::move(incoming);
      if (is_view) state.views |= bit(input);
    } else if (session_.policy().in_place_shortcuts && only_holder(held) &&
               (state.views & bit(input)) == 0 && is_dense(held.shape(), held.strides())) {
      add_into(held, incoming);
    } else {
      held = elementwise(Elementwise::kAdd, held.dtype(), {&held, &incoming}, {1});
      state.views &= ~bit(input);
    }
  }

  Session& session_;
  GraphRetention graph_;
  std::vector<State> states_;
  std::priority_queue<Entry> ready_;
};

}  // namespace

Edge gradient_edge(const Tensor& tensor) {
  TensorImpl& impl = *tensor.impl();
  if (impl.grad_fn) return {impl.grad_fn, impl.output_number};
  if (impl.accumulator != nullptr) return {Ref<TapeNode>(impl.accumulator), 0};
  Ref<TapeNode> accumulator = make_ref<TapeNode>("AccumulateGrad", TapeNode::kFirst);
  accumulator->module = impl.storage->module();
  accumulator->outputs.push_back({impl.shape, impl.dtype});
  accumulator->set_function(AccumulateGrad(tensor.ref()));
  impl.accumulator = accumulator.get();
  return {std::move(accumulator), 0};
}

void run_backward(const Tensor& loss, GraphRetention graph) {
  Session& session = loss.session();
  Tensor ones;
  {
    const ComponentScope scope(session, Component::kLogitsLoss);
    ones = session.full(loss.shape(), loss.dtype(), 1);
  }
  run_backward(std::span(&loss, 1), std::span(&ones, 1), graph);
}

void run_backward(std::span<const Tensor> roots, std::span<const Tensor> gradients,
                  GraphRetention graph) {
  const auto frozen = [](const Tensor& root) { return !root.requires_grad(); };
  if (roots.empty() || std::any_of(roots.begin(), roots.end(), frozen)) {
    throw Error(
        ErrorKind::kInput,
        "nothing that is trained takes part in the loss, so PyTorch would refuse the backward "
        "pass; train a layer, or set training.mode: inference");
  }
  Session& session = roots.front().session();
  std::vector<Edge> edges;
  for (const Tensor& root : roots) edges.push_back(gradient_edge(root));
  const bool is_nested = session.in_backward;
  const Scoped<bool> no_grad(session.grad_enabled, false);
  const Scoped<bool> thread(session.in_backward, true);
  const Scoped<CheckpointFrame*> frame(session.checkpoint, nullptr);
  Run run(session, graph, is_nested ? 0 : session.last_graph);
  run.go(edges, gradients);
  if (!is_nested) session.last_graph = run.nodes();
}

}  // namespace memfathom
