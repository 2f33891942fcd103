// Library workspaces: what cuDNN, cuFFT and cuBLAS ask for, and the interface that answers it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/dtype.h"
#include "core/enum_names.h"
#include "core/shape.h"
#include "core/source.h"

namespace memfathom {

enum class Library : std::uint8_t { kCublas, kCublasLt, kCudnn, kCufft, kOnednn, kFftw };

template <>
inline constexpr auto kEnumNames<Library> =
    std::to_array<EnumName<Library>>({{Library::kCublas, "cublas"},
                                      {Library::kCublasLt, "cublaslt"},
                                      {Library::kCudnn, "cudnn"},
                                      {Library::kCufft, "cufft"},
                                      {Library::kOnednn, "onednn"},
                                      {Library::kFftw, "fftw"}});

enum class ConvolutionKind : std::uint8_t { kForward, kDataGradient, kWeightGradient };

template <>
inline constexpr auto kEnumNames<ConvolutionKind> = std::to_array<EnumName<ConvolutionKind>>(
    {{ConvolutionKind::kForward, "forward"},
     {ConvolutionKind::kDataGradient, "data_gradient"},
     {ConvolutionKind::kWeightGradient, "weight_gradient"}});

// One convolution call. Shapes are PyTorch's: input [N, C, spatial...], weight [out, in/groups,
// spatial...] (transposed: [in, out/groups, spatial...]). `input` is the forward input, whatever
// the kind.
struct ConvolutionQuery {
  ConvolutionKind kind = ConvolutionKind::kForward;
  Shape input;
  Shape weight;
  Shape stride;
  Shape padding;
  Shape output_padding;
  Shape dilation;
  std::int64_t groups = 1;
  bool transposed = false;
  bool channels_last = false;
  bool benchmark = false;  // the largest workspace that was tried, not the first choice's
  DType dtype = DType::kFp32;

  bool operator==(const ConvolutionQuery&) const = default;
};

enum class FftKind : std::uint8_t { kRealToComplex, kComplexToReal, kComplexToComplex };

template <>
inline constexpr auto kEnumNames<FftKind> =
    std::to_array<EnumName<FftKind>>({{FftKind::kRealToComplex, "real_to_complex"},
                                      {FftKind::kComplexToReal, "complex_to_real"},
                                      {FftKind::kComplexToComplex, "complex_to_complex"}});

// One cuFFT plan: `batch` transforms over `extents` (the real-space extents, last one fastest).
struct FftQuery {
  FftKind kind = FftKind::kRealToComplex;
  Shape extents;
  std::int64_t batch = 1;
  DType dtype = DType::kFp32;

  bool operator==(const FftQuery&) const = default;
};

// One fused attention: q [batch, heads, queries, head size], k and v [batch, key heads, keys, head
// size]. Strides, in elements, of what does not lie densely as [batch, length, heads, head size].
struct AttentionQuery {
  bool backward = false;
  bool causal = false;
  DType dtype = DType::kFp16;
  Shape q, k;
  struct Strides {
    Shape q, k, v, out, dout, dq, dk, dv;
    bool operator==(const Strides&) const = default;
  };
  Strides strides;

  bool operator==(const AttentionQuery&) const = default;
};

struct WorkspaceSize {
  Bytes bytes;
  Source source = Source::kDefault;
};

// Where workspaces come from: the library asked, a measured table, a fitted model. Implementations
// are deterministic and may be called from several threads; only what Device::workspaces() returns
// belongs to the thread that uses the device. A model that wraps another one forwards every query.
class WorkspaceModel {
 public:
  virtual ~WorkspaceModel() = default;
  virtual WorkspaceSize convolution(const ConvolutionQuery& query) const = 0;
  virtual WorkspaceSize fft(const FftQuery& query) const = 0;
  // In addition to the temporaries of PyTorch's own kernel. kDefault: no library runs it.
  virtual WorkspaceSize attention(const AttentionQuery& query) const = 0;
};

// NoWorkspaces: no library asks for anything.
class NoWorkspaces final : public WorkspaceModel {
 public:
  WorkspaceSize convolution(const ConvolutionQuery&) const override { return {}; }
  WorkspaceSize fft(const FftQuery&) const override { return {}; }
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }
};

// A workspace that a library really asked for, as recorded by a profile.
struct WorkspaceRequest {
  Library library = Library::kCudnn;
  std::string operation;  // "convolution forward", "rfft2", ...
  std::string shape;      // canonical text of the query, for people and as a key
  Bytes bytes;

  bool operator==(const WorkspaceRequest&) const = default;
};

const char* to_string(Library library);
const char* to_string(ConvolutionKind kind);
const char* to_string(FftKind kind);
std::optional<Library> parse_library(std::string_view text);

// The canonical text of a query: equal queries have equal texts. Used as a cache key and shown to
// people, e.g. "conv data_gradient fp16 nhwc x[32,3,224,224] w[64,3,7,7] s[2,2] p[3,3] d[1,1] g1".
std::string to_string(const ConvolutionQuery& query);
std::string to_string(const FftQuery& query);
std::string to_string(const AttentionQuery& query);

}  // namespace memfathom
