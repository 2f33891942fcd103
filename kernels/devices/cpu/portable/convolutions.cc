// Convolutions as matrix products with patches of the image, a bounded part of them at a time.
#include "kernels/devices/cpu/convolutions.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "kernels/devices/cpu/convolution_operands.h"
#include "kernels/devices/cpu/gemm.h"
#include "kernels/devices/cpu/portable/patches.h"
#include "kernels/devices/reference/convolution_roles.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {

struct ConvolutionPlan {
  ConvolutionKind writes = ConvolutionKind::kForward;
  Shape image, map;
  PatchGeometry geometry;
  std::int64_t channels, filters;  // of one group
  std::int64_t width = 0;          // places whose patches are made at a time; 0: none are needed
  Piece patches;
  Piece image_copy, map_copy, weight_copy;  // fp32 copies, channels first
  std::int64_t workspace = 0;
};

namespace {

constexpr std::int64_t kMaxPatches = 1 << 20;  // elements: 4 MiB

void refuse_unless(bool holds, const ConvolutionQuery& query, const char* reason) {
  if (holds) return;
  throw Error(ErrorKind::kEnvironment,
              fmt::format("the cpu device cannot plan \"{}\": {}", to_string(query), reason));
}

ConvolutionPlan make_plan(const ConvolutionQuery& query) {
  const Shape result = result_shape(query);
  const Shape &image = query.transposed ? result : query.input,
              &map = query.transposed ? query.input : result;
  for (const std::int64_t extent : result)
    refuse_unless(extent > 0, query, "its result would be empty");
  refuse_unless(image[1] == query.weight[1] * query.groups && map[1] == query.weight[0], query,
                "the filter has other channels");
  ConvolutionPlan plan{written(query),
                       image,
                       map,
                       PatchGeometry(query, image, map),
                       query.weight[1],
                       query.weight[0] / query.groups};
  const std::int64_t height = plan.channels * plan.geometry.taps();
  if (!plan.geometry.is_pointwise()) {
    plan.width = std::clamp(kMaxPatches / height, std::int64_t{1}, plan.geometry.places());
    place(plan.patches, height * plan.width * 4, plan.workspace);
  }
  if (is_16bit_float(query.dtype) || query.channels_last) {
    place(plan.image_copy, image.elements() * 4, plan.workspace);
    place(plan.map_copy, map.elements() * 4, plan.workspace);
    place(plan.weight_copy, query.weight.elements() * 4, plan.workspace);
  }
  return plan;
}

// One image and one group: patches [height, places], weight [filters, height], map [filters,
// places].
void run_group(const ConvolutionPlan& plan, float* image, float* weight, float* map,
               float* patches) {
  const std::int64_t places = plan.geometry.places(), height = plan.channels * plan.geometry.taps();
  const std::int64_t step = plan.width == 0 ? places : plan.width;
  for (std::int64_t first = 0; first < places; first += step) {
    const std::int64_t count = std::min(step, places - first);
    float* matrix = plan.width == 0 ? image : patches;
    if (plan.width != 0 && plan.writes != ConvolutionKind::kDataGradient)
      to_patches(plan.geometry, image, plan.channels, first, count, matrix);
    const Matrix filter{weight, height, false}, part{map + first, places, false};
    switch (plan.writes) {
      case ConvolutionKind::kForward:
        sgemm(plan.filters, count, height, 1, filter, {matrix, count, false}, 0, map + first,
              places);
        break;
      case ConvolutionKind::kDataGradient:
        sgemm(height, count, plan.filters, 1, {weight, height, true}, part, 0, matrix, count);
        if (plan.width != 0) add_patches(plan.geometry, matrix, plan.channels, first, count, image);
        break;
      case ConvolutionKind::kWeightGradient:
        sgemm(plan.filters, height, count, 1, part, {matrix, count, true}, 1, weight, height);
        break;
    }
  }
}

}  // namespace

struct Convolutions::Engine {};

Convolutions::Convolutions() = default;
Convolutions::~Convolutions() = default;

const ConvolutionPlan& Convolutions::plan(const ConvolutionQuery& query) {
  const std::string key = to_string(query);
  const std::lock_guard lock(mutex_);
  const auto known = plans_.find(key);
  if (known != plans_.end()) return *known->second;
  auto made = std::make_unique<ConvolutionPlan>(make_plan(query));
  return *plans_.emplace(key, std::move(made)).first->second;
}

Bytes Convolutions::workspace(const ConvolutionQuery& query) {
  if (query.dtype == DType::kFp64) return Bytes{};
  return Bytes{plan(query).workspace};
}

void Convolutions::run(const ConvolutionCall& call) {
  if (call.query.dtype == DType::kFp64) return run_reference(call);
  const ConvolutionPlan& plan = this->plan(call.query);
  const ConvolutionRoles roles = roles_of(call);
  Workspace workspace(call.workspace, plan.workspace);
  const Side image(roles.image, false, workspace.at(plan.image_copy));
  const Side map(roles.map, false, workspace.at(plan.map_copy));
  const Side weight(roles.weight, false, workspace.at(plan.weight_copy));
  const Side& written = plan.writes == ConvolutionKind::kForward        ? map
                        : plan.writes == ConvolutionKind::kDataGradient ? image
                                                                        : weight;
  for (const Side* side : {&image, &map, &weight}) {
    if (side != &written) side->read();
  }
  const Shape& sums =
      plan.writes == ConvolutionKind::kDataGradient ? plan.image : call.query.weight;
  // The forward pass writes each element once; the others add to them.
  if (plan.writes != ConvolutionKind::kForward)
    std::fill_n(static_cast<float*>(written.data()), sums.elements(), 0.0f);

  const std::int64_t plane = plan.image.elements() / (plan.image[0] * plan.image[1]);
  const std::int64_t group_weight = plan.filters * plan.channels * plan.geometry.taps();
  auto* patches = static_cast<float*>(workspace.at(plan.patches));
  for (std::int64_t n = 0; n < plan.image[0]; ++n) {
    for (std::int64_t g = 0; g < call.query.groups; ++g) {
      run_group(plan,
                static_cast<float*>(image.data()) + (n * plan.image[1] + g * plan.channels) * plane,
                static_cast<float*>(weight.data()) + g * group_weight,
                static_cast<float*>(map.data()) +
                    (n * plan.map[1] + g * plan.filters) * plan.geometry.places(),
                patches);
    }
  }
  written.write_back();
}

}  // namespace memfathom::cpu
