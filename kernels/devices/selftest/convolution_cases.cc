#include <fmt/format.h>

#include <vector>

#include "core/architecture.h"
#include "kernels/devices/selftest/harness.h"

namespace memfathom::selftest {
namespace {

struct Variant {
  const char* name;
  Shape x, w, y;
  Shape stride, padding, dilation, output_padding;
  std::int64_t groups;
  bool transposed;
};

// Real GPUs round fp32 operands to TF32 in convolutions, as PyTorch allows.
constexpr Tolerance kTolerance{1e-9, 4e-3, 1e-2, 4e-2};

void compare_kinds(Harness& harness, const Variant& v, DType type, bool channels_last,
                   bool benchmark) {
  for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                     ConvolutionKind::kWeightGradient}) {
    Tensors t;
    const bool last = channels_last && v.x.rank() > 3;
    const auto tensor = [&](const Shape& shape) {
      return last ? t.channels_last(type, shape) : t.uniform(type, shape);
    };
    ConvolutionCall call;
    call.query = {kind,       v.x,      v.w,          v.stride, v.padding, v.output_padding,
                  v.dilation, v.groups, v.transposed, last,     benchmark, type};
    const std::string name = fmt::format("{} {}", v.name, to_string(call.query));
    if (kind == ConvolutionKind::kForward)
      call.y = tensor(v.y);
    else
      call.dy = tensor(v.y);
    if (kind == ConvolutionKind::kDataGradient)
      call.dx = tensor(v.x);
    else
      call.x = tensor(v.x);
    if (kind == ConvolutionKind::kWeightGradient)
      call.dw = tensor(v.w);
    else
      call.w = tensor(v.w);
    harness.compare_with_workspace(
        name, call,
        [](const Device& device, const ConvolutionCall& c) {
          return device.workspaces().convolution(c.query).bytes;
        },
        {&ConvolutionCall::y, &ConvolutionCall::dx, &ConvolutionCall::dw}, kTolerance);
  }
}

// cuDNN has no bf16 convolutions for GPUs before Ampere; other libraries support them everywhere.
bool convolves_bf16(const Device& device) {
  const int capability = compute_capability(device.environment().architecture);
  return capability == 0 || capability >= kAmpere;
}

}  // namespace

void convolution_cases(Harness& harness) {
  std::vector<DType> types{DType::kFp32, DType::kFp16};
  if (convolves_bf16(harness.device())) types.push_back(DType::kBf16);
  const Variant variants[] = {
      {"2-D", {2, 4, 8, 7}, {8, 4, 3, 3}, {2, 8, 8, 7}, {1, 1}, {1, 1}, {1, 1}, {}, 1, false},
      {"2-D strided",
       {2, 4, 9, 8},
       {8, 4, 3, 2},
       {2, 8, 4, 4},
       {2, 2},
       {0, 0},
       {1, 1},
       {},
       1,
       false},
      {"2-D dilated",
       {1, 4, 9, 9},
       {4, 4, 3, 3},
       {1, 4, 7, 5},
       {1, 1},
       {1, 0},
       {2, 2},
       {},
       1,
       false},
      {"2-D in groups",
       {2, 8, 6, 6},
       {8, 4, 3, 3},
       {2, 8, 6, 6},
       {1, 1},
       {1, 1},
       {1, 1},
       {},
       2,
       false},
      {"1-D", {2, 4, 12}, {8, 4, 5}, {2, 8, 12}, {1}, {2}, {1}, {}, 1, false},
      {"3-D",
       {1, 4, 5, 6, 4},
       {4, 4, 3, 3, 3},
       {1, 4, 5, 6, 4},
       {1, 1, 1},
       {1, 1, 1},
       {1, 1, 1},
       {},
       1,
       false},
      {"transposed",
       {2, 8, 4, 5},
       {8, 4, 3, 3},
       {2, 4, 8, 10},
       {2, 2},
       {1, 1},
       {1, 1},
       {1, 1},
       1,
       true}};
  for (const Variant& variant : variants) {
    for (const DType type : types) {
      compare_kinds(harness, variant, type, false, false);
      compare_kinds(harness, variant, type, true, false);
    }
  }
  compare_kinds(harness, variants[0], DType::kFp32, false, true);
  compare_kinds(harness, variants[0], DType::kFp16, true, true);
}

}  // namespace memfathom::selftest
