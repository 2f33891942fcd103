// OnednnConvolutions through oneDNN: plans by query, their workspaces, and running them.
//
// The workspace holds all that a call needs beyond its operands: oneDNN's scratchpad (which the
// library is told to leave to us), the weights in the order its kernel wants them, and fp32 copies
// of 16-bit operands.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

struct ConvolutionPlan;

class OnednnConvolutions {
 public:
  OnednnConvolutions();
  ~OnednnConvolutions();

  // Safe to call from several threads.
  Bytes workspace(const ConvolutionQuery& query);
  // One call at a time. A workspace that is absent or too small is replaced by memory of our own.
  void run(const ConvolutionCall& call);

 private:
  const ConvolutionPlan& plan(const ConvolutionQuery& query);

  struct Engine;
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<ConvolutionPlan>> plans_;
};

}  // namespace memfathom::cpu
