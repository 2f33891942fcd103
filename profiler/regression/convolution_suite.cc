#include <fmt/format.h>

#include <array>

#include "profiler/regression/suite.h"

namespace memfathom {
namespace {

// Kernels and maps are cubes or squares; `depth` is the first extent of a non-cubic volume.
struct Geometry {
  int dimensions;
  std::int64_t batch;
  std::int64_t in;
  std::int64_t out;
  std::int64_t size;
  std::int64_t kernel;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  std::int64_t depth = 0;
  bool transposed = false;
  bool patches = false;  // no padding: patches do not overlap
};

constexpr std::array kGeometries{
    // Its data gradient went from 24.7 to 62.2 MiB between cuDNN 9.19 and 9.22 (fp16, NHWC, H100).
    Geometry{2, 32, 3, 64, 224, 7, 2},                           // ResNet stem
    Geometry{2, 32, 64, 64, 56, 3},                              // ResNet
    Geometry{2, 32, 256, 64, 56, 1},                             // ResNet bottleneck
    Geometry{2, 32, 128, 128, 56, 3, 2},                         // ResNet downsampling
    Geometry{2, 32, 256, 512, 56, 1, 2},                         // ResNet shortcut
    Geometry{2, 32, 512, 512, 7, 3},                             // ResNet, last stage
    Geometry{2, 32, 128, 128, 56, 3, 1, 1, 32},                  // ResNeXt
    Geometry{2, 8, 256, 256, 64, 3, 1, 2},                       // DeepLab
    Geometry{2, 8, 64, 128, 128, 3},                             // U-Net encoder
    Geometry{2, 8, 1024, 512, 32, 3},                            // U-Net decoder
    Geometry{2, 8, 256, 128, 32, 2, 2, 1, 1, 0, true, true},     // U-Net upsampling
    Geometry{2, 4, 320, 320, 64, 3},                             // diffusion U-Net
    Geometry{2, 1, 128, 128, 512, 3},                            // image decoder
    Geometry{2, 32, 3, 768, 224, 16, 16, 1, 1, 0, false, true},  // ViT patches
    // 3-D: several cuDNN releases chose bf16 kernels with far larger workspaces.
    Geometry{3, 4, 64, 64, 56, 3, 1, 1, 1, 8},    // 3-D ResNet
    Geometry{3, 1, 32, 64, 64, 3},                // 3-D U-Net
    Geometry{3, 1, 128, 128, 64, 3, 1, 1, 1, 5},  // video decoder
    Geometry{3, 2, 32, 32, 64, 1},                // 3-D FNO
};

Shape cube(int dimensions, std::int64_t extent) {
  Shape shape;
  for (int i = 0; i < dimensions; ++i) shape.push_back(extent);
  return shape;
}

ConvolutionQuery query_of(const Geometry& g) {
  ConvolutionQuery query;
  query.input = {g.batch, g.in};
  query.weight = g.transposed ? Shape{g.in, g.out / g.groups} : Shape{g.out, g.in / g.groups};
  for (int i = 0; i < g.dimensions; ++i) {
    query.input.push_back(i == 0 && g.depth > 0 ? g.depth : g.size);
    query.weight.push_back(g.kernel);
  }
  query.stride = cube(g.dimensions, g.stride);
  query.padding = cube(g.dimensions, g.patches ? 0 : g.dilation * (g.kernel - 1) / 2);
  query.dilation = cube(g.dimensions, g.dilation);
  if (g.transposed) query.output_padding = cube(g.dimensions, 0);
  query.groups = g.groups;
  query.transposed = g.transposed;
  return query;
}

std::string kernel_text(const Geometry& g) {
  std::string text =
      g.dimensions == 2 ? fmt::format("{0}x{0}", g.kernel) : fmt::format("{0}x{0}x{0}", g.kernel);
  return g.transposed ? "transposed " + text : text;
}

std::string slug_of(const Geometry& g) {
  std::string text =
      g.dimensions == 2 ? fmt::format("{0}x{0}", g.kernel) : fmt::format("{0}x{0}x{0}", g.kernel);
  if (g.transposed) text += "t";
  if (g.stride > 1) text += fmt::format("s{}", g.stride);
  if (g.dilation > 1) text += fmt::format("d{}", g.dilation);
  if (g.groups > 1) text += fmt::format("g{}", g.groups);
  text += fmt::format("-{}-{}-", g.in, g.out);
  if (g.depth > 0) text += fmt::format("{}x", g.depth);
  return text + fmt::format("{}-b{}", g.size, g.batch);
}

std::string label_of(const Geometry& g) {
  std::string text = kernel_text(g);
  if (g.stride > 1) text += fmt::format("/s{}", g.stride);
  if (g.dilation > 1) text += fmt::format("/d{}", g.dilation);
  if (g.groups > 1) text += fmt::format("/g{}", g.groups);
  text += fmt::format(" {}→{} @", g.in, g.out);
  if (g.depth > 0) {
    text += fmt::format("{}x{}²", g.depth, g.size);
  } else {
    text += fmt::format("{}{}", g.size, g.dimensions == 2 ? "²" : "³");
  }
  return text + fmt::format(" b{}", g.batch);
}

const char* words_of(ConvolutionKind kind) {
  switch (kind) {
    case ConvolutionKind::kForward: return "forward";
    case ConvolutionKind::kDataGradient: return "data gradient";
    case ConvolutionKind::kWeightGradient: return "weight gradient";
  }
  return "unknown";
}

}  // namespace

std::vector<ConvolutionCase> convolution_suite() {
  std::vector<ConvolutionCase> cases;
  for (const Geometry& geometry : kGeometries) {
    for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                       ConvolutionKind::kWeightGradient}) {
      for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32}) {
        for (const bool channels_last : {true, false}) {
          ConvolutionQuery query = query_of(geometry);
          query.kind = kind;
          query.dtype = dtype;
          query.channels_last = channels_last;
          const bool flat = geometry.dimensions == 2;
          const char* layout =
              channels_last ? (flat ? "NHWC" : "NDHWC") : (flat ? "NCHW" : "NCDHW");
          cases.push_back({fmt::format("conv/{}/{}/{}/{}", slug_of(geometry), to_string(kind),
                                       to_string(dtype), channels_last ? "nhwc" : "nchw"),
                           fmt::format("{} {} {} {}", words_of(kind), label_of(geometry),
                                       to_string(dtype), layout),
                           query});
        }
      }
    }
  }
  return cases;
}

std::vector<AttentionCase> attention_suite() {
  struct Row {
    int batch, heads, key_heads, queries, keys, head_size;
  };
  constexpr std::array kRows{
      Row{4, 32, 32, 4096, 4096, 128},  // language model
      Row{4, 32, 8, 4096, 4096, 128},   // grouped queries
      Row{32, 12, 12, 197, 197, 64},    // ViT
      Row{8, 8, 8, 4096, 77, 64},       // cross-attention
      Row{8, 32, 8, 1, 8192, 128},      // decoding
  };
  // If a version rejects a pass for a described device, the row records it, and the first version
  // that plans it appears as new.
  struct Pass {
    const char* name;
    const char* words;
    const char* direction;  // in the planner's protocol
    const char* mask;
  };
  constexpr std::array kPasses{Pass{"forward", "forward", "forward", ""},
                               Pass{"forward-causal", "causal forward", "forward", " causal"},
                               Pass{"backward", "backward", "backward", ""},
                               Pass{"backward-causal", "causal backward", "backward", " causal"}};
  std::vector<AttentionCase> cases;
  for (const Row& row : kRows) {
    for (const Pass& pass : kPasses) {
      for (const DType dtype : {DType::kFp16, DType::kBf16}) {
        cases.push_back({fmt::format("attention/h{}-kv{}-q{}-k{}-d{}-b{}/{}/{}", row.heads,
                                     row.key_heads, row.queries, row.keys, row.head_size, row.batch,
                                     pass.name, to_string(dtype)),
                         fmt::format("attention {} {} heads of {}, {} queries, {} keys, b{} {}",
                                     pass.words, row.heads, row.head_size, row.queries, row.keys,
                                     row.batch, to_string(dtype)),
                         fmt::format("attention {} {} {} {} {} {} {} {}{}", pass.direction,
                                     to_string(dtype), row.batch, row.heads, row.key_heads,
                                     row.queries, row.keys, row.head_size, pass.mask)});
      }
    }
  }
  return cases;
}

}  // namespace memfathom
