#include "cli/estimate/elapsed_line.h"

#include <fmt/format.h>

#include <chrono>
#include <ostream>
#include <system_error>
#include <utility>

namespace memfathom {
namespace {

constexpr std::chrono::seconds kSilent{2};
constexpr std::chrono::seconds kBetweenLines{1};

}  // namespace

ElapsedLine::ElapsedLine(std::ostream& out, ProgressMode mode, std::string what)
    : out_(out), what_(std::move(what)) {
  if (mode != ProgressMode::kTerminal) return;
  try {
    drawer_ = std::thread([this] { draw_until_done(); });
  } catch (const std::system_error&) {
    // Where the system allows no thread the answer comes without a line before it.
  }
}

ElapsedLine::~ElapsedLine() {
  if (!drawer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  done_changed_.notify_one();
  drawer_.join();
}

void ElapsedLine::draw_until_done() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  bool drawn = false;
  std::unique_lock lock(mutex_);
  for (Clock::time_point next = began + kSilent;
       !done_changed_.wait_until(lock, next, [this] { return done_; }); next += kBetweenLines) {
    const std::chrono::duration<double> passed = Clock::now() - began;
    out_ << fmt::format("\r\x1b[K{}: {}", what_, duration_text(passed.count())) << std::flush;
    drawn = true;
  }
  if (drawn) out_ << "\r\x1b[K" << std::flush;
}

}  // namespace memfathom
