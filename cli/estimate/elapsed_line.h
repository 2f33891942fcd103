// ElapsedLine: for how long an answer has been worked on, as one moving line on a terminal.
#pragma once

#include <condition_variable>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

#include "core/progress.h"

namespace memfathom {

// Work that ends within two seconds shows nothing, and neither does a pipe. A single replay has no
// steps to count beforehand, so the line says what is done and since when. Nothing else may write
// to `out` while this lives.
class ElapsedLine {
 public:
  ElapsedLine(std::ostream& out, ProgressMode mode, std::string what);
  ElapsedLine(const ElapsedLine&) = delete;
  ElapsedLine& operator=(const ElapsedLine&) = delete;
  ~ElapsedLine();  // clears the line

 private:
  void draw_until_done();

  std::ostream& out_;
  std::string what_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::thread drawer_;  // only on a terminal
};

}  // namespace memfathom
