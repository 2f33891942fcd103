// VirtualGpu: a simulated GPU whose hidden truth follows from its name: for tests and
// demonstrations.
//
// Nothing it says is a measurement: its environment's architecture is "virtual", and the store and
// the fitter keep such samples apart from real ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/environment.h"
#include "core/workspace.h"

namespace memfathom {

class VirtualGpu final : public WorkspaceModel {
 public:
  // Of "virtual:NAME", or of a changed one,
  // "virtual:NAME+context=300MiB+workspace=1.5+slack=64MiB": the same GPU under another driver
  // that takes so much more, for seeing whether the change is found. Throws Error(kInput) for a
  // name that is empty or not plain and for an unknown change.
  explicit VirtualGpu(std::string_view name);

  struct Truth {
    Bytes context, cublas, cudnn, cufft;
    double convolution_factor = 0;  // workspace bytes per byte of input and output
    double transform_factor = 0;
    Bytes slack;  // cached by the allocator where no job finds it
  };
  const Truth& truth() const { return truth_; }
  Environment environment() const;

  WorkspaceSize convolution(const ConvolutionQuery& query) const override;
  WorkspaceSize fft(const FftQuery& query) const override;
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }

  // What nvidia-smi would show of a true use: in whole pages, with a little scatter that depends on
  // `seed` only.
  Bytes reading(Bytes truly_used, std::uint64_t seed) const;

 private:
  void plant(std::string_view change);

  std::string name_;
  std::string planted_;  // "+context=300MiB", empty when nothing is
  std::uint64_t hash_;
  Truth truth_;
};

// A number that depends on the text only, on every machine (FNV-1a, then mixed).
std::uint64_t stable_hash(std::string_view text);

}  // namespace memfathom
