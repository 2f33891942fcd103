#include "kernels/devices/cuda/cudnn/descriptor.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace memfathom::cudnn {
namespace {

std::string last_message() {
  std::array<char, 512> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  text.back() = '\0';
  const std::string message(text.data());
  return message.empty() ? message : ": " + message;
}

void check(cudnnStatus_t status, const char* call, const char* what) {
  // Formats the text only on failure, because planning makes dozens of calls per query.
  if (status != CUDNN_STATUS_SUCCESS)
    memfathom::cudnn::check(status, fmt::format("{}({})", call, what));
}

}  // namespace

bool is_recoverable(cudnnStatus_t status) {
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  return category == CUDNN_STATUS_BAD_PARAM || category == CUDNN_STATUS_NOT_SUPPORTED ||
         status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

void check(cudnnStatus_t status, std::string_view call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw StatusError(status, fmt::format("cuDNN: {} failed with {}{}", call,
                                        cudnnGetErrorString(status), last_message()));
}

void Descriptor::Destroy::operator()(cudnnBackendDescriptor_t raw) const {
  cudnnBackendDestroyDescriptor(raw);
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type, const char* what) : what_(what) {
  cudnnBackendDescriptor_t raw = nullptr;
  check(cudnnBackendCreateDescriptor(type, &raw), "cudnnBackendCreateDescriptor", what_);
  raw_.reset(raw);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(raw(), name, type, count, values), "cudnnBackendSetAttribute",
        what_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, float value) {
  set(name, CUDNN_TYPE_FLOAT, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  cudnnBackendDescriptor_t other = value.raw();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

Descriptor& Descriptor::finalize() {
  check(cudnnBackendFinalize(raw()), "cudnnBackendFinalize", what_);
  return *this;
}

std::int64_t Descriptor::count(cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t type) const {
  return get(name, type, 0, nullptr);
}

std::int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             std::int64_t capacity, void* values) const {
  std::int64_t held = 0;
  check(cudnnBackendGetAttribute(raw(), name, type, capacity, &held, values),
        "cudnnBackendGetAttribute", what_);
  return held;
}

std::int64_t Descriptor::get_int64(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  get(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

void Descriptor::get(cudnnBackendAttributeName_t name, Descriptor& into) const {
  cudnnBackendDescriptor_t other = into.raw();
  get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

void Descriptor::get(cudnnBackendAttributeName_t name, std::vector<Descriptor>& into) const {
  std::vector<cudnnBackendDescriptor_t> others;
  others.reserve(into.size());
  for (const Descriptor& descriptor : into) others.push_back(descriptor.raw());
  const std::int64_t held = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                static_cast<std::int64_t>(others.size()), others.data());
  while (static_cast<std::int64_t>(into.size()) > held) into.pop_back();
}

}  // namespace memfathom::cudnn
