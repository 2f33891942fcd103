// SearchProgress: how far a search for changes is, as one moving line on a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <mutex>

#include "core/progress.h"

namespace memfathom {

// A search that ends within a second shows nothing, and neither does a pipe. The number of
// estimates that a search needs is not known before its end, so the line counts them.
class SearchProgress {
 public:
  SearchProgress(std::ostream& out, ProgressMode mode, Progress::Clock clock);
  SearchProgress(const SearchProgress&) = delete;
  SearchProgress& operator=(const SearchProgress&) = delete;
  ~SearchProgress();  // clears the line

  void count();  // one more estimate is done; from any thread

 private:
  std::ostream& out_;
  ProgressMode mode_;
  Progress::Clock clock_;
  double started_;
  double last_drawn_;
  std::mutex mutex_;
  std::int64_t done_ = 0;
  bool line_is_drawn_ = false;
};

}  // namespace memfathom
