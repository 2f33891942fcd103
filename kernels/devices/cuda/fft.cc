#include "kernels/devices/cuda/fft.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "kernels/devices/cuda/layout.h"
#include "kernels/devices/cuda/status.h"

namespace memfathom::cuda {
namespace {

cufftType type_of(FftKind kind) {
  switch (kind) {
    case FftKind::kRealToComplex: return CUFFT_R2C;
    case FftKind::kComplexToReal: return CUFFT_C2R;
    case FftKind::kComplexToComplex: break;
  }
  return CUFFT_C2C;
}

cufftHandle create() {
  cufftHandle handle = 0;
  check(cufftCreate(&handle), "cufftCreate");
  return handle;
}

void require(bool holds, const FftCall& call, const char* why) {
  if (holds) return;
  throw Error(ErrorKind::kInternal,
              fmt::format("fft over {} dimensions of {} into {}: {}", call.rank,
                          to_string(call.in.shape), to_string(call.out.shape), why));
}

}  // namespace

FftPlan::FftPlan(const FftQuery& query, cudaStream_t stream) : handle_(create()) {
  // The destructor does not run for a partly constructed plan.
  try {
    check(cufftSetAutoAllocation(*handle_, 0), "cufftSetAutoAllocation");
    Shape extents = query.extents;
    const std::string what = fmt::format("cufftMakePlanMany64 for {}", to_string(query));
    // No embedding: both sides are dense, in cuFFT's own layout of half spectra.
    check(cufftMakePlanMany64(*handle_, extents.rank(),
                              reinterpret_cast<long long int*>(extents.begin()), nullptr, 1, 0,
                              nullptr, 1, 0, type_of(query.kind), query.batch, &workspace_),
          what);
    check(cufftSetStream(*handle_, stream), "cufftSetStream");
  } catch (...) {
    cufftDestroy(*handle_);
    throw;
  }
}

FftPlan::FftPlan(FftPlan&& other) noexcept
    : handle_(std::exchange(other.handle_, std::nullopt)), workspace_(other.workspace_) {}

FftPlan::~FftPlan() {
  if (handle_) cufftDestroy(*handle_);
}

FftQuery query_of(const FftCall& call) {
  const bool to_real = call.kind == FftKind::kComplexToReal;
  const Operand& real =
      to_real ? call.out : call.in;  // in complex-to-complex transforms both sides have the extents
  const Operand& spectrum = to_real ? call.in : call.out;
  const int rank = real.shape.rank();
  const DType wanted = call.kind == FftKind::kComplexToComplex ? DType::kComplex64 : DType::kFp32;
  require(real.dtype == wanted && spectrum.dtype == DType::kComplex64, call,
          "cuFFT is used in fp32 only");
  require(call.rank >= 1 && call.rank <= 3 && call.rank <= rank && spectrum.shape.rank() == rank,
          call, "one to three dimensions can be transformed");
  require(is_packed(call.in, false) && is_packed(call.out, false), call,
          "the operands must be dense");
  FftQuery query{call.kind, {}, 1, DType::kFp32};
  for (int d = 0; d < rank; ++d) {
    const bool halved = d == rank - 1 && call.kind != FftKind::kComplexToComplex;
    require(spectrum.shape[d] == (halved ? real.shape[d] / 2 + 1 : real.shape[d]), call,
            "the extents do not fit");
    if (d < rank - call.rank) {
      query.batch *= real.shape[d];
    } else {
      query.extents.push_back(real.shape[d]);
    }
  }
  return query;
}

FftPlan& Fft::plan(const FftQuery& query) {
  return plans_.get(to_string(query), [&] { return FftPlan(query, stream_); });
}

cufftResult Fft::run(const FftCall& call) {
  FftPlan& made = plan(query_of(call));
  const std::size_t given =
      call.workspace
          ? static_cast<std::size_t>(size_of(call.workspace.shape, call.workspace.dtype).count())
          : 0;
  if (given < made.workspace()) {
    require(
        false, call,
        fmt::format("the work area has {} B; cuFFT needs {} B", given, made.workspace()).c_str());
  }
  // Also called with null: a plan without its own work area requires it, as in PyTorch.
  check(cufftSetWorkArea(made.handle(), call.workspace.data), "cufftSetWorkArea");
  switch (call.kind) {
    case FftKind::kRealToComplex:
      return cufftExecR2C(made.handle(), static_cast<cufftReal*>(call.in.data),
                          static_cast<cufftComplex*>(call.out.data));
    case FftKind::kComplexToReal:
      return cufftExecC2R(made.handle(), static_cast<cufftComplex*>(call.in.data),
                          static_cast<cufftReal*>(call.out.data));
    case FftKind::kComplexToComplex: break;
  }
  return cufftExecC2C(made.handle(), static_cast<cufftComplex*>(call.in.data),
                      static_cast<cufftComplex*>(call.out.data),
                      call.inverse ? CUFFT_INVERSE : CUFFT_FORWARD);
}

}  // namespace memfathom::cuda
