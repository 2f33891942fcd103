#include "estimator/run/timeline.h"

#include <algorithm>
#include <utility>

namespace memfathom {
namespace {

constexpr std::size_t kMaxPoints = 1200;
constexpr int kLastIteration = 2;

TimelinePoint point_of(std::size_t phase, const std::vector<ComponentBytes>& live,
                       std::int64_t reserved) {
  TimelinePoint point;
  point.phase = phase;
  point.reserved = reserved;
  for (const ComponentBytes& module : live) {
    for (std::size_t c = 0; c < kComponentCount; ++c) {
      point.live[c] += module[c];
      point.allocated += module[c];
    }
  }
  return point;
}

// The higher of two, with what was reserved at most.
void raise(TimelinePoint& point, const TimelinePoint& other) {
  const std::int64_t reserved = std::max(point.reserved, other.reserved);
  if (other.allocated > point.allocated) point = other;
  point.reserved = reserved;
}

}  // namespace

void WatchedAllocator::note() {
  if (ledger_ == nullptr) return;
  const std::vector<PhaseRecord>& phases = ledger_->phases();
  const std::int64_t reserved = statistics().reserved_bytes.all.current;
  const auto note_peak = [&](std::size_t phase) {
    if (phases[phase].allocated_peak <= peak_) return;
    peak_ = phases[phase].allocated_peak;
    add(point_of(phase, phases[phase].live_at_peak, reserved));
  };
  // Peaks of phases that ended since the last event, the one that was on first.
  while (timeline_.phases.size() < phases.size()) {
    const std::size_t next = timeline_.phases.size();
    if (next > 0) note_peak(next - 1);
    if (phases[next].iteration > kLastIteration || phases[next].name == "end") break;
    timeline_.phases.push_back({phases[next].name, phases[next].iteration});
    peak_ = 0;
    events_ = per_point_;  // a phase begins with a point of its own
  }
  if (timeline_.phases.size() < phases.size()) {
    ledger_ = nullptr;  // the third iteration began, or the run is over
    return;
  }
  note_peak(phases.size() - 1);
  add(point_of(phases.size() - 1, ledger_->live(), reserved));
}

void WatchedAllocator::add(TimelinePoint point) {
  std::vector<TimelinePoint>& points = timeline_.points;
  if (++events_ < per_point_ && !points.empty() && points.back().phase == point.phase) {
    raise(points.back(), point);
    return;
  }
  points.push_back(point);
  events_ = 0;
  if (points.size() >= kMaxPoints) join_neighbours();
}

void WatchedAllocator::join_neighbours() {
  std::vector<TimelinePoint> joined;
  for (std::size_t i = 0; i < timeline_.points.size(); ++i) {
    const TimelinePoint& point = timeline_.points[i];
    if (i % 2 == 1 && joined.back().phase == point.phase) {
      raise(joined.back(), point);
    } else {
      joined.push_back(point);
    }
  }
  timeline_.points = std::move(joined);
  per_point_ *= 2;
}

}  // namespace memfathom
