#include "kernels/devices/cpu/convolutions.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/devices/cpu/libraries/convolution_plan.h"
#include "kernels/devices/reference/convolution_roles.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {

struct Convolutions::Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  void reorder(const dnnl::memory::desc& from, void* source, const dnnl::memory::desc& to,
               void* target) {
    dnnl::memory in(from, engine, source), out(to, engine, target);
    dnnl::reorder(in, out).execute(stream, in, out);
    stream.wait();
  }
};

Convolutions::Convolutions() : engine_(std::make_unique<Engine>()) {}
Convolutions::~Convolutions() = default;

const ConvolutionPlan& Convolutions::plan(const ConvolutionQuery& query) {
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

Bytes Convolutions::workspace(const ConvolutionQuery& query) {
  if (query.dtype == DType::kFp64) return Bytes{};
  return Bytes{plan(query).workspace};
}

void Convolutions::run(const ConvolutionCall& call) {
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
