// Collectives: what communicators of several GPUs hold outside the allocator, as coefficients of a
// calibration. fitter/collectives_fit.h fits them to the samples of the PyTorch probe's ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/calibration.h"

namespace memfathom {

// Names of the coefficients, in bytes of each rank. Measured with NCCL's own choice of channels,
// but for the last.
namespace collectives {
inline constexpr std::string_view kFirst =
    "communicator.first";  // the first communicator, of two ranks
inline constexpr std::string_view kNext = "communicator.next";         // each further one
inline constexpr std::string_view kPerRank = "communicator.per_rank";  // each rank beyond two
inline constexpr std::string_view kDdp = "communicator.ddp";           // what DDP adds
inline constexpr std::string_view kFsdp = "communicator.fsdp";         // what FSDP adds
inline constexpr std::string_view kPerChannel = "communicator.per_channel";
}  // namespace collectives

// The family of the samples.
inline constexpr std::string_view kCollectivesFamily = "collectives";

// The communicators of a job, each by its number of ranks, and its standard error; nullopt if the
// calibration has not measured any.
struct CommunicatorBytes {
  double bytes = 0;
  double standard_error = 0;
};
std::optional<CommunicatorBytes> measured_communicators(const Calibration& calibration,
                                                        const std::vector<std::int64_t>& ranks);

}  // namespace memfathom
