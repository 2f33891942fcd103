// VirtualGpu: a simulated GPU whose ground truth is derived from its name; for tests and demos.
//
// Its readings are not measurements: its environment's architecture is "virtual", and the store and
// the fitter keep such samples separate from real ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/environment.h"
#include "core/workspace.h"

namespace memfathom {

class VirtualGpu final : public WorkspaceModel {
 public:
  // Creates "virtual:NAME", or a changed GPU,
  // "virtual:NAME+context=300MiB+workspace=1.5+slack=64MiB": the same GPU with a driver that uses
  // that much more, to test whether the change is detected. "+defect=300MiB" is one GPU that
  // differs from others with the same driver: its environment does not show any change. Throws
  // Error(kInput) for an empty or invalid name and for an unknown change.
  explicit VirtualGpu(std::string_view name);

  struct Truth {
    Bytes context, cublas, cudnn, cufft;
    double convolution_factor = 0;  // workspace bytes per byte of input and output
    double transform_factor = 0;
    Bytes slack;  // cached by the allocator but unusable by any job
  };
  const Truth& truth() const { return truth_; }
  Environment environment() const;

  WorkspaceSize convolution(const ConvolutionQuery& query) const override;
  WorkspaceSize fft(const FftQuery& query) const override;
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }

  // The reading nvidia-smi would show for the true use: in whole pages, with noise that depends
  // only on `seed`.
  Bytes reading(Bytes truly_used, std::uint64_t seed) const;

 private:
  void plant(std::string_view change);

  std::string name_;
  std::string planted_;  // "+context=300MiB", empty if unchanged
  bool has_defect_ = false;
  std::uint64_t hash_;
  Truth truth_;
};

// A hash of the text, the same on every machine (FNV-1a, then mixed).
std::uint64_t stable_hash(std::string_view text);

}  // namespace memfathom
