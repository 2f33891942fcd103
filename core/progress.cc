#include "core/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <ostream>

#include "core/terminal.h"
#include "core/utf8.h"

namespace memfathom {
namespace {

constexpr double kRedrawIntervalSeconds = 0.1;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressMode progress_mode(int file_descriptor, bool quiet) {
  if (quiet) return ProgressMode::kQuiet;
  return isatty(file_descriptor) == 1 ? ProgressMode::kTerminal : ProgressMode::kPipe;
}

Progress::Progress(std::ostream& out, ProgressMode mode, std::string what, std::int64_t total)
    : Progress(out, mode, std::move(what), total, steady_seconds, terminal_columns(STDERR_FILENO)) {
}

Progress::Progress(std::ostream& out, ProgressMode mode, std::string what, std::int64_t total,
                   Clock clock, std::size_t columns)
    : out_(out),
      mode_(mode),
      what_(std::move(what)),
      total_(total),
      clock_(std::move(clock)),
      columns_(columns),
      started_(clock_()),
      last_drawn_(started_ - kRedrawIntervalSeconds) {}

Progress::~Progress() {
  if (line_is_drawn_) out_ << "\r\x1b[K" << std::flush;
}

void Progress::advance(std::int64_t steps, std::string_view note) {
  done_ += steps;
  if (mode_ == ProgressMode::kQuiet) return;
  const double now = clock_();
  if (mode_ == ProgressMode::kTerminal) {
    draw(note, now);
  } else {
    print_line(now);
  }
}

std::string Progress::summary(double now) const {
  const double elapsed = now - started_;
  std::string text = fmt::format("{}: {} of {}", what_, done_, total_);
  if (elapsed <= 0 || done_ <= 0) return text;
  const double rate = static_cast<double>(done_) / elapsed;
  text += rate >= 1 ? fmt::format(", {:.1f}/s", rate) : fmt::format(", {:.1f} s each", 1 / rate);
  if (done_ < total_)
    text += fmt::format(", {} left", duration_text(static_cast<double>(total_ - done_) / rate));
  return text;
}

void Progress::draw(std::string_view note, double now) {
  if (now - last_drawn_ < kRedrawIntervalSeconds && done_ < total_) return;
  last_drawn_ = now;
  line_is_drawn_ = true;
  std::string line = summary(now);
  if (!note.empty()) line += fmt::format("  {}", note);
  // The last column stays free, because a line that wraps cannot be overwritten.
  while (!line.empty() && display_width(line) >= columns_)
    line = std::string(cut_utf8(line, line.size() - 1));
  out_ << '\r' << line << "\x1b[K" << std::flush;
}

void Progress::print_line(double now) {
  const std::int64_t tenths = total_ > 0
                                  ? static_cast<std::int64_t>(10.0 * static_cast<double>(done_) /
                                                              static_cast<double>(total_))
                                  : 10;
  if (tenths <= tenths_reported_) return;
  tenths_reported_ = tenths;
  out_ << summary(now) << '\n' << std::flush;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace memfathom
