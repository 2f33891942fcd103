// Convolutions: convolutions of the cpu device: plans by query, their workspaces, and execution.
//
// The workspace holds everything a call needs in addition to its operands: what the implementation
// (libraries/ or portable/) asks for, and fp32 copies of 16-bit operands.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

struct ConvolutionPlan;

class Convolutions {
 public:
  Convolutions();
  ~Convolutions();

  // Thread-safe.
  Bytes workspace(const ConvolutionQuery& query);
  // One call at a time. If the workspace is absent or too small, the call allocates its own.
  void run(const ConvolutionCall& call);

 private:
  const ConvolutionPlan& plan(const ConvolutionQuery& query);

  struct Engine;
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<ConvolutionPlan>> plans_;
};

}  // namespace memfathom::cpu
