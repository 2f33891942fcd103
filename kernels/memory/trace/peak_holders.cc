#include "kernels/memory/trace/peak_holders.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace memfathom {
namespace {

constexpr std::int64_t kRounding = 512;

// Bytes are checked for overflow: a trace may claim anything.
Bytes rounded(std::int64_t bytes) { return Bytes{(bytes + kRounding - 1) / kRounding * kRounding}; }

// The event that reaches the peak.
std::size_t find_peak(const Trace& trace) {
  constexpr int kSteady = 2;
  const bool has_steady =
      std::any_of(trace.spans.begin(), trace.spans.end(),
                  [](const Trace::Span& span) { return span.iteration >= kSteady; });
  std::vector<Bytes> live(trace.slots);
  Bytes total;
  std::size_t next_span = 0;
  const Trace::Span* span = nullptr;
  Bytes highest;
  std::size_t peak = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    while (next_span < trace.spans.size() && trace.spans[next_span].first_event <= i)
      span = &trace.spans[next_span++];
    const Trace::Event& event = trace.events[i];
    total -= live[event.slot];
    live[event.slot] = event.is_free() ? Bytes{} : rounded(event.bytes);
    total += live[event.slot];
    const bool counts = !has_steady || (span != nullptr && span->iteration >= kSteady);
    if (counts && total > highest) {
      highest = total;
      peak = i;
    }
  }
  return peak;
}

const std::string& name_of(const Trace::Label& label, HolderKey key) {
  switch (key) {
    case HolderKey::kModule: return label.module;
    case HolderKey::kOperation: return label.name;
    case HolderKey::kLine: break;
  }
  return label.line;
}

}  // namespace

PeakHolders holders_after(const Trace& trace, std::size_t events, HolderKey key) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  PeakHolders result;
  events = std::min(events, trace.events.size());
  for (const Trace::Span& span : trace.spans) {
    if (span.first_event >= events) break;
    result.phase = span.phase;
    result.iteration = span.iteration;
  }
  std::vector<std::size_t> made(trace.slots, kNone);  // the event that made what is live
  for (std::size_t i = 0; i < events; ++i)
    made[trace.events[i].slot] = trace.events[i].is_free() ? kNone : i;
  std::map<std::string, PeakHolder> holders;
  for (const std::size_t event : made) {
    if (event == kNone) continue;
    const std::string& name = name_of(trace.label_of(event), key);
    PeakHolder& holder = holders[name];
    holder.name = name;
    holder.bytes += rounded(trace.events[event].bytes);
    result.bytes += rounded(trace.events[event].bytes);
    ++holder.storages;
  }
  for (auto& [name, holder] : holders) result.holders.push_back(std::move(holder));
  std::sort(result.holders.begin(), result.holders.end(),
            [](const PeakHolder& a, const PeakHolder& b) {
              return std::tie(b.bytes, a.name) < std::tie(a.bytes, b.name);
            });
  return result;
}

PeakHolders peak_holders(const Trace& trace, HolderKey key) {
  return holders_after(trace, find_peak(trace) + 1, key);
}

}  // namespace memfathom
