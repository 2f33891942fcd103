// Fixture for the doubled CUDA device: a fresh machine, and a leak check.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/devices/element/split.h"
#include "kernels/framework/device/device.h"
#include "tests/kernels/devices/cuda/doubles/control.h"
#include "tests/kernels/devices/cuda/doubles/cudnn_control.h"

namespace memfathom::cuda {

class DoubledTest : public testing::Test {
 protected:
  void SetUp() override {
    doubles::plan_with_real_cudnn(false);
    doubles::reset();
  }
  // A test's devices are local to its body and already destroyed here.
  void TearDown() override { EXPECT_THAT(doubles::leaks(), testing::IsEmpty()); }
};

// Tensors in a device's memory, with numbers going in and out through copies.
class DeviceTensors {
 public:
  explicit DeviceTensors(Device& device) : device_(device) {}
  DeviceTensors(const DeviceTensors&) = delete;
  DeviceTensors& operator=(const DeviceTensors&) = delete;
  ~DeviceTensors() {
    for (const auto& [address, size] : held_) device_.memory().release(address, size);
  }

  Operand bytes(std::int64_t count) { return make(DType::kUint8, {count}); }
  Operand make(DType type, const Shape& shape) {
    const Bytes size = size_of(shape, type).rounded_up(Bytes{512});
    const auto address = device_.memory().allocate(size, 0);
    held_.emplace_back(address.value(), size);
    return {reinterpret_cast<void*>(*address), type, shape, element::contiguous_strides(shape)};
  }
  Operand fp32(const Shape& shape, const std::vector<float>& values) {
    const Operand operand = make(DType::kFp32, shape);
    device_.copy_from_host(operand.data, values.data(), size_of(shape, DType::kFp32));
    return operand;
  }
  std::vector<float> read(const Operand& operand) {
    std::vector<float> values(static_cast<std::size_t>(operand.shape.elements()));
    device_.copy_to_host(values.data(), operand.data, size_of(operand.shape, operand.dtype));
    return values;
  }

 private:
  Device& device_;
  std::vector<std::pair<std::uint64_t, Bytes>> held_;
};

// The kind and message of the Error that `work` throws; empty if it throws none.
template <typename Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(to_string(error.kind())) + ": " + error.what();
  }
  return "";
}

}  // namespace memfathom::cuda
