#include "kernels/devices/cpu/convolution.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/devices/cpu/convolution_plan.h"
#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/convolution_roles.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {
namespace {

// The workspace of one call: the caller's, or our own if that is too small.
class Workspace {
 public:
  Workspace(const Operand& given, std::int64_t needed) {
    const bool enough = given && given.shape.elements() >= needed;
    if (!enough && needed > 0) own_ = scratch<char>(needed);
    data_ = enough ? static_cast<char*>(given.data) : own_.get();
  }
  void* at(const Piece& piece) { return piece.size > 0 ? data_ + piece.offset : nullptr; }

 private:
  std::unique_ptr<char[]> own_;
  char* data_ = nullptr;
};

bool same_layout(const Operand& t, const Shape& strides) {
  for (int d = 0; d < t.shape.rank(); ++d) {
    if (t.shape[d] != 1 && t.strides[d] != strides[d]) return false;
  }
  return true;
}

// An operand in the plan's form: fp32 in the plan's layout. Others are copied, and copied back
// after a write.
class Side {
 public:
  Side(const Operand& t, bool channels_last, void* copy) : operand_(t) {
    const Shape strides = layout_strides(t.shape, channels_last);
    if (t.dtype == DType::kFp32 && same_layout(t, strides)) {
      data_ = t.data;
      return;
    }
    if (copy == nullptr) {
      own_ = scratch<float>(t.shape.elements());
      copy = own_.get();
    }
    data_ = copy;
    dense_ = {copy, DType::kFp32, t.shape, strides};
  }
  void* data() const { return data_; }
  void read() const {
    if (dense_) convert(operand_, dense_);
  }
  void write_back() const {
    if (dense_) convert(dense_, operand_);
  }

 private:
  static void convert(const Operand& from, const Operand& to) {
    ElementwiseCall copy;
    copy.op = Elementwise::kCopy;
    copy.a = from;
    copy.out = to;
    run_loops(copy);
  }

  Operand operand_, dense_;
  std::unique_ptr<float[]> own_;
  void* data_ = nullptr;
};

}  // namespace

struct OnednnConvolutions::Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  void reorder(const dnnl::memory::desc& from, void* source, const dnnl::memory::desc& to,
               void* target) {
    dnnl::memory in(from, engine, source), out(to, engine, target);
    dnnl::reorder(in, out).execute(stream, in, out);
    stream.wait();
  }
};

OnednnConvolutions::OnednnConvolutions() : engine_(std::make_unique<Engine>()) {}
OnednnConvolutions::~OnednnConvolutions() = default;

const ConvolutionPlan& OnednnConvolutions::plan(const ConvolutionQuery& query) {
  const std::string key = to_string(query);
  const std::lock_guard lock(mutex_);
  auto& entry = plans_[key];
  if (!entry) {
    try {
      entry = std::make_unique<ConvolutionPlan>(make_plan(query, engine_->engine));
    } catch (const dnnl::error& error) {
      plans_.erase(key);
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("oneDNN cannot plan \"{}\": {}", key, error.what()));
    }
  }
  return *entry;
}

Bytes OnednnConvolutions::workspace(const ConvolutionQuery& query) {
  if (query.dtype == DType::kFp64) return Bytes{};
  return Bytes{plan(query).workspace};
}

void OnednnConvolutions::run(const ConvolutionCall& call) {
  if (call.query.dtype == DType::kFp64) return run_reference(call);
  const ConvolutionPlan& plan = this->plan(call.query);
  const ConvolutionRoles roles = roles_of(call);
  const bool channels_last = call.query.channels_last;
  Workspace workspace(call.workspace, plan.workspace);
  const Side image(roles.image, channels_last, workspace.at(plan.image_copy));
  const Side map(roles.map, channels_last, workspace.at(plan.map_copy));
  const Side weight(roles.weight, channels_last, workspace.at(plan.weight_copy));
  const bool writes_image = plan.writes == ConvolutionKind::kDataGradient;
  const bool writes_map = plan.writes == ConvolutionKind::kForward;
  const bool writes_weight = plan.writes == ConvolutionKind::kWeightGradient;
  if (!writes_image) image.read();
  if (!writes_map) map.read();
  if (!writes_weight) weight.read();

  try {
    const dnnl::engine& engine = engine_->engine;
    void* inside = workspace.at(plan.weight_piece);
    if (inside != nullptr && !writes_weight)
      engine_->reorder(plan.weight, weight.data(), plan.weight_inside, inside);
    const dnnl::memory image_memory(plan.image, engine, image.data()),
        map_memory(plan.map, engine, map.data());
    const dnnl::memory weight_memory(plan.weight_inside, engine,
                                     inside != nullptr ? inside : weight.data());
    const dnnl::memory scratchpad(plan.scratchpad, engine, workspace.at(plan.scratchpad_piece));
    plan.primitive.execute(
        engine_->stream, {{writes_image ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, image_memory},
                          {writes_map ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, map_memory},
                          {writes_weight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, weight_memory},
                          {DNNL_ARG_SCRATCHPAD, scratchpad}});
    engine_->stream.wait();
    if (inside != nullptr && writes_weight)
      engine_->reorder(plan.weight_inside, inside, plan.weight, weight.data());
  } catch (const dnnl::error& error) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("oneDNN failed at \"{}\": {}", to_string(call.query), error.what()));
  }
  if (writes_image) image.write_back();
  if (writes_map) map.write_back();
  if (writes_weight) weight.write_back();
}

}  // namespace memfathom::cpu
