#include "kernels/devices/cpu/transforms.h"

#include <fftw3.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/devices/cpu/complex_copy.h"
#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {
namespace {

// The extents of the transform in real space: the last one is that of the real side.
std::vector<int> extents_of(const FftCall& call) {
  const Shape& shape = call.kind == FftKind::kComplexToReal ? call.out.shape : call.in.shape;
  std::vector<int> extents;
  for (int d = shape.rank() - call.rank; d < shape.rank(); ++d)
    extents.push_back(static_cast<int>(shape[d]));
  return extents;
}

int product_of_last(const Shape& shape, int rank) {
  std::int64_t product = 1;
  for (int d = shape.rank() - rank; d < shape.rank(); ++d) product *= shape[d];
  return static_cast<int>(product);
}

}  // namespace

struct Transforms::Plans {
  struct Plan {
    fftwf_plan plan = nullptr;
    ~Plan() {
      if (plan != nullptr) fftwf_destroy_plan(plan);
    }
  };
  std::map<std::string, std::unique_ptr<Plan>> known;

  Plan& find(const FftCall& call, std::int64_t batch);
};

Transforms::Transforms() : plans_(std::make_unique<Plans>()) {}
Transforms::~Transforms() = default;

Bytes Transforms::workspace(const FftQuery& query) {
  if (query.kind != FftKind::kComplexToReal) return Bytes{};
  Shape shape = query.extents;
  shape[-1] = shape[-1] / 2 + 1;
  return size_of(shape, DType::kComplex64) * query.batch;
}

Transforms::Plans::Plan& Transforms::Plans::find(const FftCall& call, std::int64_t batch) {
  const std::vector<int> extents = extents_of(call);
  const std::string key = fmt::format("{} {} {} {}", to_string(call.kind), call.inverse, batch,
                                      fmt::join(extents, ","));
  auto& entry = known[key];
  if (entry) return *entry;
  // FFTW_ESTIMATE does not touch the arrays; FFTW_UNALIGNED makes the plan valid for any address.
  const auto in = scratch<float>(floats_of(call.in)), out = scratch<float>(floats_of(call.out));
  auto* complex_in = reinterpret_cast<fftwf_complex*>(in.get());
  auto* complex_out = reinterpret_cast<fftwf_complex*>(out.get());
  const int rank = call.rank, count = static_cast<int>(batch);
  const int step_in = product_of_last(call.in.shape, rank),
            step_out = product_of_last(call.out.shape, rank);
  constexpr unsigned kFlags = FFTW_ESTIMATE | FFTW_UNALIGNED;
  auto made = std::make_unique<Plan>();
  switch (call.kind) {
    case FftKind::kRealToComplex:
      made->plan =
          fftwf_plan_many_dft_r2c(rank, extents.data(), count, in.get(), nullptr, 1, step_in,
                                  complex_out, nullptr, 1, step_out, kFlags | FFTW_PRESERVE_INPUT);
      break;
    case FftKind::kComplexToReal:
      made->plan = fftwf_plan_many_dft_c2r(rank, extents.data(), count, complex_in, nullptr, 1,
                                           step_in, out.get(), nullptr, 1, step_out, kFlags);
      break;
    case FftKind::kComplexToComplex:
      made->plan = fftwf_plan_many_dft(
          rank, extents.data(), count, complex_in, nullptr, 1, step_in, complex_out, nullptr, 1,
          step_out, call.inverse ? FFTW_BACKWARD : FFTW_FORWARD, kFlags | FFTW_PRESERVE_INPUT);
      break;
  }
  if (made->plan == nullptr) {
    known.erase(key);
    throw Error(ErrorKind::kEnvironment, fmt::format("FFTW cannot plan the transform \"{}\"", key));
  }
  entry = std::move(made);
  return *entry;
}

void Transforms::run(const FftCall& call) {
  const bool halves = call.kind != FftKind::kComplexToComplex;
  const std::int64_t last =
      call.kind == FftKind::kComplexToReal ? call.in.shape[-1] : call.out.shape[-1];
  const std::int64_t full =
      call.kind == FftKind::kComplexToReal ? call.out.shape[-1] : call.in.shape[-1];
  const bool fits_int =
      call.in.shape.elements() <= INT32_MAX && call.out.shape.elements() <= INT32_MAX;
  // The reference computes fp64, odd half spectra and sizes beyond FFTW's int.
  if (call.in.dtype == DType::kFp64 || call.out.dtype == DType::kFp64 || !fits_int ||
      (halves && last != full / 2 + 1)) {
    return run_reference(call);
  }
  if (call.in.shape.elements() == 0) return;
  const std::int64_t batch = call.in.shape.elements() / product_of_last(call.in.shape, call.rank);
  const Plans::Plan& plan = plans_->find(call, batch);

  std::unique_ptr<float[]> in_copy, out_copy;
  float* in = static_cast<float*>(call.in.data);
  // Plans are for separate arrays, so an in-place transform also needs a copy.
  if (!is_plain(call.in) || call.kind == FftKind::kComplexToReal || call.in.data == call.out.data) {
    const std::int64_t bytes = floats_of(call.in) * static_cast<std::int64_t>(sizeof(float));
    const bool given = call.workspace && call.workspace.shape.elements() >= bytes;
    if (!given) in_copy = scratch<float>(floats_of(call.in));
    in = given ? static_cast<float*>(call.workspace.data) : in_copy.get();
    copy_in(call.in, in);
  }
  const bool in_place = is_plain(call.out);
  if (!in_place) out_copy = scratch<float>(floats_of(call.out));
  float* out = in_place ? static_cast<float*>(call.out.data) : out_copy.get();

  auto* complex_in = reinterpret_cast<fftwf_complex*>(in);
  auto* complex_out = reinterpret_cast<fftwf_complex*>(out);
  switch (call.kind) {
    case FftKind::kRealToComplex: fftwf_execute_dft_r2c(plan.plan, in, complex_out); break;
    case FftKind::kComplexToReal: fftwf_execute_dft_c2r(plan.plan, complex_in, out); break;
    case FftKind::kComplexToComplex: fftwf_execute_dft(plan.plan, complex_in, complex_out); break;
  }
  copy_out(call.out, out, call.scale, in_place);
}

}  // namespace memfathom::cpu
