// Largest: the largest batch, sequence, resolution or number of frames that fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/document.h"
#include "estimator/advise/estimate_cache.h"
#include "estimator/job/job.h"
#include "estimator/job/patch.h"

namespace memfathom {

// When a job is said to fit: the upper end of its interval within `available`; where a probability
// is asked for and the calibration can tell it, that probability instead; and on the host what all
// processes of a node keep there.
struct Limit {
  Bytes available;
  std::optional<double> probability;
  std::optional<Bytes> host;  // the memory of a host; nothing: not known

  bool holds(const Estimate& estimate) const;
  bool host_holds(const Estimate& estimate) const;
};

// One number of a job that memory grows with. Its values are offset + step * k, k >= 1.
struct Extent {
  std::string name;  // batch_size | sequence_length | image_size | num_frames
  std::int64_t now = 1;
  std::int64_t width = 0;  // of an image; `now` is its height
  std::int64_t step = 1;
  std::int64_t offset = 0;
  std::int64_t end = 0;  // what the model's library refuses more of; 0: nothing

  std::int64_t steps_now() const { return (now - offset) / step; }
  std::int64_t value(std::int64_t k) const { return offset + step * k; }
  Patch patch(std::int64_t value) const;
  std::string text(std::int64_t value) const;  // "16", "256 x 512"
};

// Those that the document says, the batch first. Of a recorded step those
// at which it can be had.
std::vector<Extent> extents_of(const Node& document, const Job& job);

// The largest value of the extent with which the job and `with` fit, at most `most` times what it
// is now; nothing when not even the smallest does.
std::optional<std::int64_t> largest_that_fits(EstimateCache& answers, const Patch& with,
                                              const Extent& extent, const Limit& limit,
                                              std::int64_t most);

}  // namespace memfathom
