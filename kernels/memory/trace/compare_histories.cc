#include "kernels/memory/trace/compare_histories.h"

#include <algorithm>
#include <optional>

namespace memfathom {
namespace {

constexpr std::int64_t kBlock = 512;  // the allocator's smallest unit
constexpr std::size_t kWindow = 256;  // how far ahead the histories may meet again
constexpr std::size_t kAgreeing = 4;  // allocations in a row that count as meeting
constexpr std::size_t kUnmatched = ~std::size_t{0};

// The allocations of a trace, each with the number of allocations that came before its free.
class History {
 public:
  explicit History(const Trace& trace) : trace_(trace) {
    std::vector<std::size_t> alive(trace.slots, kUnmatched);
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const Trace::Event& event = trace.events[i];
      if (!event.is_free()) {
        if (event.bytes == 0) continue;  // PyTorch allocates nothing for it
        alive[event.slot] = events_.size();
        events_.push_back(i);
        freed_.push_back(kUnmatched);
      } else if (alive[event.slot] != kUnmatched) {
        freed_[alive[event.slot]] = events_.size();
        alive[event.slot] = kUnmatched;
      }
    }
    for (std::size_t& at : freed_) at = std::min(at, events_.size());
  }

  std::size_t size() const { return events_.size(); }
  std::int64_t blocks(std::size_t index) const {
    return (trace_.events[events_[index]].bytes + kBlock - 1) / kBlock;
  }
  std::size_t freed(std::size_t index) const { return freed_[index]; }

  HistoryAllocation at(std::size_t index) const {
    HistoryAllocation allocation;
    if (index >= size()) return allocation;
    const std::size_t event = events_[index];
    const auto span = std::upper_bound(
        trace_.spans.begin(), trace_.spans.end(), event,
        [](std::size_t value, const Trace::Span& one) { return value < one.first_event; });
    allocation.number = index + 1;
    allocation.bytes = Bytes{trace_.events[event].bytes};
    allocation.label = trace_.label_of(event);
    if (span != trace_.spans.begin()) {
      allocation.phase = std::prev(span)->phase;
      allocation.iteration = std::prev(span)->iteration;
    }
    return allocation;
  }

 private:
  const Trace& trace_;
  std::vector<std::size_t> events_;  // of the allocations
  std::vector<std::size_t> freed_;
};

class Comparison {
 public:
  Comparison(const Trace& recorded, const Trace& replayed)
      : recorded_(recorded), replayed_(replayed), partner_(recorded_.size(), kUnmatched) {}

  HistoryComparison run() {
    result_.recorded = recorded_.size();
    result_.replayed = replayed_.size();
    match();
    compare_lifetimes();
    std::stable_sort(result_.differences.begin(), result_.differences.end(),
                     [](const HistoryDifference& a, const HistoryDifference& b) {
                       return place_of(a) < place_of(b);
                     });
    if (result_.differences.size() > kMaxHistoryDifferences) {
      result_.differences.resize(kMaxHistoryDifferences);
      result_.gave_up = true;
    }
    return std::move(result_);
  }

 private:
  struct Skip {
    std::size_t recorded = 0;
    std::size_t replayed = 0;
  };

  // An allocation that only the replay has comes before the next recorded one.
  static std::size_t place_of(const HistoryDifference& difference) {
    return difference.recorded.number == 0 ? kUnmatched : difference.recorded.number;
  }

  bool agree(std::size_t i, std::size_t j) const {
    for (std::size_t n = 0; n < kAgreeing; ++n) {
      const bool ends = i + n >= recorded_.size();
      if (ends || j + n >= replayed_.size()) return ends && j + n >= replayed_.size();
      if (recorded_.blocks(i + n) != replayed_.blocks(j + n)) return false;
    }
    return true;
  }

  // The fewest allocations to leave out until the histories agree again.
  std::optional<Skip> next_agreement(std::size_t i, std::size_t j) const {
    for (std::size_t skipped = 1; skipped <= kWindow; ++skipped) {
      for (std::size_t of_recorded = 0; of_recorded <= skipped; ++of_recorded) {
        const Skip skip{of_recorded, skipped - of_recorded};
        const bool exists =
            i + skip.recorded <= recorded_.size() && j + skip.replayed <= replayed_.size();
        if (exists && agree(i + skip.recorded, j + skip.replayed)) return skip;
      }
    }
    return std::nullopt;
  }

  void match() {
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < recorded_.size() || j < replayed_.size()) {
      if (i < recorded_.size() && j < replayed_.size() &&
          recorded_.blocks(i) == replayed_.blocks(j)) {
        partner_[i++] = j++;
        continue;
      }
      const std::optional<Skip> skip = next_agreement(i, j);
      const Skip left_out = skip.value_or(Skip{1, 1});
      note_skipped(i, j, left_out);
      i += left_out.recorded;
      j += left_out.replayed;
      if (!skip || result_.differences.size() >= kMaxHistoryDifferences) {
        result_.gave_up = true;
        return;
      }
    }
  }

  void note_skipped(std::size_t i, std::size_t j, const Skip& skip) {
    const std::size_t both =
        std::min({skip.recorded, skip.replayed, recorded_.size() - i, replayed_.size() - j});
    for (std::size_t n = 0; n < both; ++n) add(HistoryDifferenceKind::kSize, i + n, j + n);
    for (std::size_t n = both; n < skip.recorded && i + n < recorded_.size(); ++n)
      add(HistoryDifferenceKind::kOnlyRecorded, i + n, j + both);
    for (std::size_t n = both; n < skip.replayed && j + n < replayed_.size(); ++n)
      add(HistoryDifferenceKind::kOnlyReplayed, i + both, j + n);
  }

  void add(HistoryDifferenceKind kind, std::size_t i, std::size_t j) {
    result_.differences.push_back({kind, recorded_.at(i), replayed_.at(j)});
  }

  // Frees are compared by the next allocation that both histories have.
  void compare_lifetimes() {
    std::vector<std::size_t> matched;  // of the recording, in order; their partners are too
    for (std::size_t i = 0; i < partner_.size(); ++i) {
      if (partner_[i] != kUnmatched) matched.push_back(i);
    }
    const std::size_t end = matched.size();
    std::size_t known = end;  // frees beyond the last common allocation are not comparable
    if (!result_.gave_up) ++known;
    for (const std::size_t i : matched) {
      const auto recorded = static_cast<std::size_t>(
          std::lower_bound(matched.begin(), matched.end(), recorded_.freed(i)) - matched.begin());
      const auto replayed = static_cast<std::size_t>(
          std::lower_bound(matched.begin(), matched.end(), replayed_.freed(partner_[i]),
                           [&](std::size_t one, std::size_t at) { return partner_[one] < at; }) -
          matched.begin());
      if (recorded == replayed || std::max(recorded, replayed) >= known) {
        ++result_.equal;
        continue;
      }
      if (result_.differences.size() > kMaxHistoryDifferences) continue;
      add(recorded < replayed ? HistoryDifferenceKind::kFreedSooner
                              : HistoryDifferenceKind::kFreedLater,
          i, partner_[i]);
    }
  }

  History recorded_;
  History replayed_;
  std::vector<std::size_t> partner_;  // of each recorded allocation in the replay
  HistoryComparison result_;
};

}  // namespace

HistoryComparison compare_histories(const Trace& recorded, const Trace& replayed) {
  return Comparison(recorded, replayed).run();
}

}  // namespace memfathom
