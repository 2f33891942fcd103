// StatusReport: what a command of the program prints (`memfathom status --format json`), asked at
// most once a second.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace memfathom {

// Thread-safe.
class StatusReport {
 public:
  // `command`: the program and its arguments.
  explicit StatusReport(std::vector<std::string> command) : command_(std::move(command)) {}

  // JSON; empty if the program failed.
  std::string text();

 private:
  std::vector<std::string> command_;
  std::mutex mutex_;
  std::string text_;
  std::chrono::steady_clock::time_point read_{};
};

}  // namespace memfathom
