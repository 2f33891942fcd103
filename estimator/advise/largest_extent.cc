#include "estimator/advise/largest_extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "estimator/readers/position_limit.h"

namespace memfathom {
namespace {

// The largest power of two up to `most` that divides all.
std::int64_t common_step(std::initializer_list<std::int64_t> values, std::int64_t most) {
  for (std::int64_t step = most; step > 1; step /= 2) {
    if (std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v % step == 0; }))
      return step;
  }
  return 1;
}

// The step of square images: a multiple of what a network may want to divide them by, which is the
// side of its patches where that is no power of two (DINOv2's 14).
std::int64_t image_step(const ModelSpec& model, std::int64_t side) {
  const std::int64_t usual = common_step({side}, 32);
  const Node* patch =
      model.config() != nullptr ? model.config()->config.find("patch_size") : nullptr;
  if (patch == nullptr || !patch->is_int() || patch->as_int() < 1) return usual;
  const bool is_divided = side % patch->as_int() == 0 && usual % patch->as_int() != 0;
  return is_divided ? patch->as_int() : usual;
}

// One side of the search: a number of steps, and the memory it takes.
struct Side {
  std::int64_t steps = 0;
  double bytes = 0;
};

// Memory is nearly straight in a batch: how many steps after `from` the line through both meets the
// limit, from 0 to `most`; nothing where it does not rise.
std::optional<std::int64_t> steps_to_limit(const Side& from, const Side& other, Bytes limit,
                                           std::int64_t most) {
  const double slope = (other.bytes - from.bytes) / static_cast<double>(other.steps - from.steps);
  if (!(slope > 0)) return std::nullopt;
  const double steps = (static_cast<double>(limit.count()) - from.bytes) / slope;
  return static_cast<std::int64_t>(std::clamp(steps, 0.0, static_cast<double>(most)));
}

// Where the line between the sides meets the limit, kept strictly between them.
std::int64_t guess(const Side& fits, const Side& too_much, Bytes limit) {
  const std::int64_t widest = too_much.steps - fits.steps;
  return std::clamp(fits.steps + steps_to_limit(fits, too_much, limit, widest).value_or(0),
                    fits.steps + 1, too_much.steps - 1);
}

// Where to look after two sizes that fit: the step beyond where their line meets the limit most
// often does not. Never far beyond what is known: the line may depend on what does not grow yet.
std::int64_t beyond(const Side& smaller, const Side& larger, Bytes limit) {
  constexpr std::int64_t kMaxTimes = 16;
  const std::int64_t most = (kMaxTimes - 1) * larger.steps;
  const auto steps = steps_to_limit(larger, smaller, limit, most - 1);
  return steps ? larger.steps + *steps + 1 : 2 * larger.steps;
}

// A recorded step has the sizes at which it can be had.
std::vector<Extent> extents_of_recording(const Trace& trace) {
  std::vector<Extent> extents;
  for (const std::string& name : trace.variable) {
    const auto now = trace.sizes.find(name);
    if (now == trace.sizes.end()) continue;
    const std::int64_t step = name == "batch_size" ? 1 : common_step({now->second}, 64);
    const auto least = trace.least.find(name);
    const std::int64_t offset = step == 1 && least != trace.least.end() ? least->second - 1 : 0;
    extents.push_back({name, now->second, 0, step, offset});
  }
  return extents;
}

}  // namespace

bool Limit::holds(const Estimate& estimate) const {
  if (estimate.totals.device_peak > available || !host_holds(estimate)) return false;
  if (probability && estimate.verdict.probability_fits)
    return *estimate.verdict.probability_fits >= *probability;
  return estimate.totals.high_to_fit() <= available;
}

bool Limit::host_holds(const Estimate& estimate) const {
  const std::optional<Bytes> needed = estimate.totals.host_of_node();
  return !host || !needed || *needed <= *host;
}

Patch Extent::patch(std::int64_t value) const {
  Node node = Node::integer(value);
  if (name == "image_size" && width != 0 && width != now) {
    node = Node::list();
    node.append(Node::integer(value));
    node.append(Node::integer(std::max<std::int64_t>(1, width * value / now)));
  }
  return {{"training." + name, std::move(node)}};
}

std::string Extent::text(std::int64_t value) const {
  if (name != "image_size" || width == 0) return fmt::format("{}", value);
  return fmt::format("{} x {}", value, std::max<std::int64_t>(1, width * value / now));
}

std::vector<Extent> extents_of(const Node& document, const Job& job) {
  if (const Trace* trace = job.model.trace()) return extents_of_recording(*trace);
  const TrainingSpec& training = job.training;
  std::vector<Extent> extents{{"batch_size", training.batch_size}};
  const Node* written = document.find("training");
  const auto is_written = [&](std::string_view key) {
    return written != nullptr && written->find(key) != nullptr;
  };
  if (is_written("sequence_length")) {
    const std::int64_t length = training.settings.sequence_length;
    extents.push_back({"sequence_length", length, 0, common_step({length}, 64), 0,
                       table_of_positions(job.model)});
  }
  if (is_written("image_size")) {
    const std::int64_t height = training.settings.image_height,
                       width = training.settings.image_width;
    // Both sides shrink alike, and stay multiples of what a network may want to divide them by.
    const std::int64_t step = height == width
                                  ? image_step(job.model, height)
                                  : height / common_step({height, width}, std::int64_t{1} << 20);
    extents.push_back({"image_size", height, width, std::max<std::int64_t>(step, 1)});
  }
  if (is_written("num_frames")) {
    const std::int64_t frames = training.settings.num_frames;
    const bool one_and_fours =
        frames > 1 && (frames - 1) % 4 == 0;  // causal video encoders: 1 + 4 k
    extents.push_back({"num_frames", frames, 0, one_and_fours ? 4 : 1, one_and_fours ? 1 : 0});
  }
  return extents;
}

std::optional<std::int64_t> largest_that_fits(EstimateCache& answers, const Patch& with,
                                              const Extent& extent, const Limit& limit,
                                              std::int64_t most) {
  // The memory of so many steps; nothing when the job cannot be answered.
  const auto look = [&](std::int64_t steps, bool& fits) {
    const Estimate* estimate = answers.of(joined(with, extent.patch(extent.value(steps))));
    fits = estimate != nullptr && limit.holds(*estimate);
    return Side{steps, estimate == nullptr
                           ? 0
                           : static_cast<double>(estimate->totals.high_to_fit().count())};
  };
  bool fits = false;
  Side low, high = look(std::max<std::int64_t>(extent.steps_now(), 1), fits);
  if (fits) {
    std::int64_t end = std::max<std::int64_t>(extent.now * most / extent.step, high.steps + 1);
    if (extent.end > 0)
      end = std::min(end, std::max(high.steps, (extent.end - extent.offset) / extent.step));
    // A line that promises too little must not make the search slow.
    constexpr int kMaxLines = 3;
    for (int looks = 0; fits && high.steps < end; ++looks) {
      const Side before = std::exchange(low, high);
      const bool by_line = looks > 0 && looks <= kMaxLines;
      const std::int64_t next = by_line ? beyond(before, low, limit.available) : 2 * low.steps;
      high = look(std::min(next, end), fits);
    }
    if (fits) return extent.value(high.steps);
  } else {
    if (high.steps == 1) return std::nullopt;
    low = look(1, fits);
    if (!fits) return std::nullopt;
  }
  bool halve = high.bytes <= 0;
  while (high.steps - low.steps > 1) {
    const std::int64_t before = high.steps - low.steps;
    const std::int64_t middle = halve ? low.steps + before / 2 : guess(low, high, limit.available);
    const Side side = look(middle, fits);
    (fits ? low : high) = side;
    // A line that brings little is followed by a halving, so that a curve cannot make the search
    // slow.
    halve = high.bytes <= 0 || (!halve && (high.steps - low.steps) * 2 > before);
  }
  return extent.value(low.steps);
}

}  // namespace memfathom
