// Harness: runs a call with operands in host memory on a device and by the reference loops, and
// compares the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/devices/reference/reference.h"
#include "kernels/devices/selftest/operands.h"
#include "kernels/devices/selftest/selftest.h"

namespace memfathom::selftest {

// Host tensors with reproducible contents. Operands point into it; it must outlive them.
class Tensors {
 public:
  // Uniform in [low, high); whole numbers for integer types, zeros and ones for kBool.
  Operand uniform(DType type, const Shape& shape, double low = -1, double high = 1);
  Operand filled(DType type, const Shape& shape, double value);
  // A non-contiguous tensor: dimension order reversed in memory, with a gap after each element of
  // the slowest.
  Operand strided(DType type, const Shape& shape, double low = -1, double high = 1);
  Operand channels_last(DType type, const Shape& shape, double low = -1, double high = 1);

 private:
  Operand make(DType type, const Shape& shape, const Shape& strides, std::int64_t elements);
  double next();

  std::deque<std::vector<double>> buffers_;  // double: aligned for every type
  std::uint64_t drawn_ = 0;
};

// The same tensor with its last two dimensions swapped.
Operand transposed(Operand operand);
// The first `extent` elements repeated along dimension `dim` by a stride of 0.
Operand repeated(Operand operand, int dim);

struct Tolerance {
  double fp64 = 1e-9, fp32 = 2e-5, fp16 = 4e-3, bf16 = 2e-2;
  double of(DType type) const;
};

// Runs calls on a device and records the comparisons.
class Harness {
 public:
  explicit Harness(Device& device) : device_(device) { report_.device = device.name(); }
  const Device& device() const { return device_; }

  // `outputs` are members of `call`; only they are compared. The tolerance is the loosest of their
  // types.
  template <typename Call>
  void compare(const std::string& name, Call call, std::initializer_list<Operand Call::*> outputs,
               const Tolerance& tolerance = {}) {
    std::vector<Operand> compared;
    for (const auto output : outputs) {
      if (call.*output) compared.push_back(call.*output);
    }
    Call on_device = call;
    run_case(
        name, compared, operands_of(on_device), [&] { device_.run(on_device); },
        [&] { run_reference(call); }, tolerance);
  }

  // The same for a call with a workspace; `ask` queries its size from the device.
  template <typename Call, typename Ask>
  void compare_with_workspace(const std::string& name, Call call, Ask ask,
                              std::initializer_list<Operand Call::*> outputs,
                              const Tolerance& tolerance) {
    Tensors scratch;
    try {
      const Bytes bytes = ask(device_, call);
      if (bytes > Bytes{}) call.workspace = scratch.filled(DType::kUint8, {bytes.count()}, 0);
    } catch (const Error& error) {
      report_.cases.push_back({name, 0, 0, error.what()});
      return;
    }
    compare(name, call, outputs, tolerance);
  }

  SelftestReport take() { return std::move(report_); }

 private:
  void run_case(const std::string& name, const std::vector<Operand>& compared,
                const std::vector<Operand*>& operands, const std::function<void()>& run,
                const std::function<void()>& reference, const Tolerance& tolerance);

  Device& device_;
  SelftestReport report_;
};

void elementwise_cases(Harness& harness);
void row_cases(Harness& harness);
void norm_cases(Harness& harness);
void plane_cases(Harness& harness);
void attention_cases(Harness& harness);
void gemm_cases(Harness& harness);
void convolution_cases(Harness& harness);
void fft_cases(Harness& harness);
// Extents on both sides of a warp's 32 and a block's 256 threads, for every kernel of our own.
void team_cases(Harness& harness);

}  // namespace memfathom::selftest
