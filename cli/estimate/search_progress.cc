#include "cli/estimate/search_progress.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

namespace memfathom {
namespace {

constexpr double kSilent = 1;  // seconds
constexpr double kBetweenLines = 0.2;

}  // namespace

SearchProgress::SearchProgress(std::ostream& out, ProgressMode mode, Progress::Clock clock)
    : out_(out), mode_(mode), clock_(std::move(clock)), started_(clock_()), last_drawn_(started_) {}

SearchProgress::~SearchProgress() {
  if (line_is_drawn_) out_ << "\r\x1b[K" << std::flush;
}

void SearchProgress::count() {
  const std::lock_guard lock(mutex_);
  ++done_;
  if (mode_ != ProgressMode::kTerminal) return;
  const double now = clock_();
  if (now - started_ < kSilent || now - last_drawn_ < kBetweenLines) return;
  last_drawn_ = now;
  line_is_drawn_ = true;
  out_ << fmt::format("\r\x1b[Ktrying changes: {} estimates, {}", done_,
                      duration_text(now - started_))
       << std::flush;
}

}  // namespace memfathom
