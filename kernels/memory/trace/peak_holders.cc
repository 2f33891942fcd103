#include "kernels/memory/trace/peak_holders.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace memfathom {
namespace {

constexpr std::int64_t kRounding = 512;

// Bytes are checked for overflow: a trace may claim anything.
Bytes rounded(std::int64_t bytes) { return Bytes{(bytes + kRounding - 1) / kRounding * kRounding}; }

struct Peak {
  std::size_t event = 0;
  const Trace::Span* span = nullptr;
  Bytes bytes;
};

Peak find_peak(const Trace& trace) {
  constexpr int kSteady = 2;
  const bool has_steady =
      std::any_of(trace.spans.begin(), trace.spans.end(),
                  [](const Trace::Span& span) { return span.iteration >= kSteady; });
  std::vector<Bytes> live(trace.slots);
  Bytes total;
  std::size_t next_span = 0;
  const Trace::Span* span = nullptr;
  Peak peak;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    while (next_span < trace.spans.size() && trace.spans[next_span].first_event <= i)
      span = &trace.spans[next_span++];
    const Trace::Event& event = trace.events[i];
    total -= live[event.slot];
    live[event.slot] = event.is_free() ? Bytes{} : rounded(event.bytes);
    total += live[event.slot];
    const bool counts = !has_steady || (span != nullptr && span->iteration >= kSteady);
    if (counts && total > peak.bytes) peak = {i, span, total};
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

PeakHolders peak_holders(const Trace& trace, HolderKey key) {
  const Peak peak = find_peak(trace);
  PeakHolders result;
  result.bytes = peak.bytes;
  if (peak.span != nullptr) {
    result.phase = peak.span->phase;
    result.iteration = peak.span->iteration;
  }
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> made(trace.slots, kNone);  // the event that made what is live
  for (std::size_t i = 0; i <= peak.event && i < trace.events.size(); ++i)
    made[trace.events[i].slot] = trace.events[i].is_free() ? kNone : i;
  std::map<std::string, PeakHolder> holders;
  for (const std::size_t event : made) {
    if (event == kNone) continue;
    const std::string& name = name_of(trace.label_of(event), key);
    PeakHolder& holder = holders[name];
    holder.name = name;
    holder.bytes += rounded(trace.events[event].bytes);
    ++holder.storages;
  }
  for (auto& [name, holder] : holders) result.holders.push_back(std::move(holder));
  std::sort(result.holders.begin(), result.holders.end(),
            [](const PeakHolder& a, const PeakHolder& b) {
              return std::tie(b.bytes, a.name) < std::tie(a.bytes, b.name);
            });
  return result;
}

}  // namespace memfathom
