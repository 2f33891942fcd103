// Descriptor: a cuDNN backend descriptor destroyed with its owner. Every status is checked; a
// failure is a StatusError.
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

// What cuDNN answered in place of success: Error(kEnvironment), or Error(kOutOfMemory) where it
// found no room on the device, that keeps the status.
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

// Whether cuDNN said no before anything was launched (a parameter it does not take, something it
// does not support, no room on the device): the device is as it was.
bool is_recoverable(cudnnStatus_t status);

// Throws a StatusError naming the call, cuDNN's status and its own last message, unless `status` is
// success.
void check(cudnnStatus_t status, std::string_view call);

// Attributes are set before finalize() and read after it; cuDNN enforces the order and check()
// reports it.
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

  // How many values the attribute holds.
  std::int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;
  std::int64_t get_int64(cudnnBackendAttributeName_t name) const;
  // Fills `into`, a not finalized descriptor of the attribute's type.
  void get(cudnnBackendAttributeName_t name, Descriptor& into) const;
  // Fills as many of `into` as there are results and drops the rest.
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
