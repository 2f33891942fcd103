// Descriptor: owns a cuDNN backend descriptor. Every status is checked; a failure throws
// StatusError.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.h"

namespace memfathom::cudnn {

// A cuDNN status other than success: Error(kEnvironment), or Error(kOutOfMemory) if the device was
// out of memory; stores the status.
class StatusError final : public Error {
 public:
  StatusError(cudnnStatus_t status, const std::string& sentence)
      : Error(status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                  ? ErrorKind::kOutOfMemory
                  : ErrorKind::kEnvironment,
              sentence),
        status_(status) {}
  cudnnStatus_t status() const { return status_; }

 private:
  cudnnStatus_t status_;
};

// Whether cuDNN rejected the call before a launch (an invalid parameter, an unsupported feature,
// out of memory): the device is unchanged.
bool is_recoverable(cudnnStatus_t status);

// Throws a StatusError with the call, cuDNN's status and its last message unless `status` is
// success.
void check(cudnnStatus_t status, std::string_view call);

// Attributes are set before finalize() and read after it; cuDNN enforces the order.
class Descriptor {
 public:
  // `what` names the descriptor in error messages and must outlive it: a string literal.
  Descriptor(cudnnBackendDescriptorType_t type, const char* what);

  cudnnBackendDescriptor_t raw() const { return raw_.get(); }
  const char* what() const { return what_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value);
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);

  Descriptor& finalize();

  // The number of values of the attribute.
  std::int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;
  std::int64_t get_int64(cudnnBackendAttributeName_t name) const;
  // Fills `into`, a descriptor of the attribute's type that is not finalized.
  void get(cudnnBackendAttributeName_t name, Descriptor& into) const;
  // Fills one element of `into` per result and drops the others.
  void get(cudnnBackendAttributeName_t name, std::vector<Descriptor>& into) const;
  // The raw call, for enumerations.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t capacity, void* values) const;

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t raw) const;
  };
  std::unique_ptr<std::remove_pointer_t<cudnnBackendDescriptor_t>, Destroy> raw_;
  const char* what_;
};

}  // namespace memfathom::cudnn
