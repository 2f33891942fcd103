// The double of cuFFT: plans are descriptions, transforms are the reference loops.
#include <cufft.h>

#include <cstring>
#include <map>
#include <string>

#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/cuda/doubles/control.h"

namespace doubles = memfathom::doubles;
using memfathom::DType;
using memfathom::FftKind;
using memfathom::Operand;
using memfathom::Shape;

namespace {

struct Plan {
  bool own_area = true;  // by default the library allocates one itself
  bool made = false;
  Shape extents;
  cufftType type = CUFFT_C2C;
  std::int64_t batch = 1;
  std::size_t work = 0;
  void* area = nullptr;
  cudaStream_t stream = nullptr;
};

std::map<cufftHandle, Plan>& plans() {
  static std::map<cufftHandle, Plan> all;
  return all;
}

const void* identity(cufftHandle handle) {
  return reinterpret_cast<const void*>(static_cast<std::intptr_t>(handle));
}

cufftResult refuse(const char* function, const std::string& why,
                   cufftResult status = CUFFT_INVALID_VALUE) {
  doubles::refuse(function, why, status);
  return status;
}

cufftResult enter(const char* function, cufftHandle handle) {
  if (const int injected = doubles::enter(function)) return static_cast<cufftResult>(injected);
  if (!doubles::alive("cufft plan", identity(handle)))
    return refuse(function, "the plan does not exist", CUFFT_INVALID_PLAN);
  return CUFFT_SUCCESS;
}

Operand operand_of(const Plan& plan, void* data, bool real, bool halved) {
  Operand operand{data, real ? DType::kFp32 : DType::kComplex64, {plan.batch}, {}};
  for (const std::int64_t extent : plan.extents) operand.shape.push_back(extent);
  if (halved) operand.shape[-1] = operand.shape[-1] / 2 + 1;
  operand.strides = memfathom::element::contiguous_strides(operand.shape);
  return operand;
}

cufftResult execute(const char* function, cufftHandle handle, cufftType type, void* in, void* out,
                    int direction) {
  if (const cufftResult status = enter(function, handle); status != CUFFT_SUCCESS) return status;
  if (doubles::sticky_error() != 0) return CUFFT_EXEC_FAILED;
  const Plan& plan = plans()[handle];
  if (!plan.made || plan.type != type)
    return refuse(function, "the plan is for another transform", CUFFT_INVALID_PLAN);
  if (!doubles::alive("stream", plan.stream))
    return refuse(function, "the stream does not exist", CUFFT_EXEC_FAILED);
  if (!plan.own_area && plan.work > 0 &&
      (doubles::host_view(plan.area, plan.work) == nullptr ||
       reinterpret_cast<std::uint64_t>(plan.area) % 256 != 0)) {
    return refuse(function, "the work area is too small, misaligned or missing",
                  CUFFT_NO_WORKSPACE);
  }
  // Real numbers are read in pairs, too.
  if (reinterpret_cast<std::uint64_t>(in) % 8 != 0 || reinterpret_cast<std::uint64_t>(out) % 8 != 0)
    return refuse(function, "an operand is not aligned as a complex number is");
  memfathom::FftCall call;
  call.kind = type == CUFFT_R2C   ? FftKind::kRealToComplex
              : type == CUFFT_C2R ? FftKind::kComplexToReal
                                  : FftKind::kComplexToComplex;
  call.rank = plan.extents.rank();
  call.inverse = direction == CUFFT_INVERSE;
  call.in = operand_of(plan, in, type == CUFFT_R2C, type == CUFFT_C2R);
  call.out = operand_of(plan, out, type == CUFFT_C2R, type == CUFFT_R2C);
  const auto bytes = [](const Operand& operand) {
    return static_cast<std::size_t>(memfathom::size_of(operand.shape, operand.dtype).count());
  };
  call.in.data = doubles::host_view(in, bytes(call.in));
  call.out.data = doubles::host_view(out, bytes(call.out));
  if (!call.in || !call.out)
    return refuse(function, "an operand is not device memory of that extent");
  memfathom::run_reference(call);
  // The real library may use the spectrum of a multi-dimensional inverse as scratch.
  if (type == CUFFT_C2R && call.rank > 1 && in != out)
    std::memset(call.in.data, 0xFF, bytes(call.in));
  return CUFFT_SUCCESS;
}

}  // namespace

extern "C" {

cufftResult cufftCreate(cufftHandle* handle) {
  static int next = 0;
  if (const int injected = doubles::enter("cufftCreate")) return static_cast<cufftResult>(injected);
  *handle = ++next;
  plans()[*handle] = Plan{};
  doubles::created("cufft plan", identity(*handle));
  return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle handle) {
  doubles::enter("cufftDestroy");
  plans().erase(handle);
  return doubles::destroyed("cufft plan", identity(handle))
             ? CUFFT_SUCCESS
             : refuse("cufftDestroy", "it does not exist");
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int automatic) {
  const cufftResult status = enter("cufftSetAutoAllocation", handle);
  if (status == CUFFT_SUCCESS) plans()[handle].own_area = automatic != 0;
  return status;
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long int* n,
                                long long int* inembed, long long int, long long int,
                                long long int* onembed, long long int, long long int,
                                cufftType type, long long int batch, std::size_t* work) {
  const char* function = "cufftMakePlanMany64";
  if (const cufftResult status = enter(function, handle); status != CUFFT_SUCCESS) return status;
  if (rank < 1 || rank > 3 || batch < 1)
    return refuse(function, "the rank or the batch is impossible", CUFFT_INVALID_SIZE);
  if (inembed != nullptr || onembed != nullptr)
    return refuse(function, "this double has dense transforms only");
  Plan& plan = plans()[handle];
  plan.extents = {};
  std::int64_t elements = batch;
  for (int d = 0; d < rank; ++d) {
    plan.extents.push_back(n[d]);
    elements *= n[d];
  }
  plan.type = type;
  plan.batch = batch;
  plan.made = true;
  // As large as the spectrum; short one-dimensional transforms need none.
  plan.work = rank == 1 && n[0] <= 8 ? 0 : static_cast<std::size_t>(elements) * 8;
  if (plan.own_area)
    doubles::refuse(function, "the library would allocate a work area of its own", 0);
  *work = plan.work;
  return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  const cufftResult status = enter("cufftSetStream", handle);
  if (status == CUFFT_SUCCESS) plans()[handle].stream = stream;
  return status;
}

cufftResult cufftSetWorkArea(cufftHandle handle, void* area) {
  const cufftResult status = enter("cufftSetWorkArea", handle);
  if (status == CUFFT_SUCCESS) plans()[handle].area = area;
  return status;
}

cufftResult cufftGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? 12 : 0;
  return static_cast<cufftResult>(doubles::enter("cufftGetProperty"));
}

cufftResult cufftExecR2C(cufftHandle handle, cufftReal* in, cufftComplex* out) {
  return execute("cufftExecR2C", handle, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle handle, cufftComplex* in, cufftReal* out) {
  return execute("cufftExecC2R", handle, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
cufftResult cufftExecC2C(cufftHandle handle, cufftComplex* in, cufftComplex* out, int direction) {
  return execute("cufftExecC2C", handle, CUFFT_C2C, in, out, direction);
}

}  // extern "C"
