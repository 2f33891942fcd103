// Progress: shows the progress of long work: one moving line on a terminal, few lines in a pipe,
// nothing if quiet.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace memfathom {

enum class ProgressMode { kTerminal, kPipe, kQuiet };

// The mode for a file descriptor (usually 2, standard error).
ProgressMode progress_mode(int file_descriptor, bool quiet);

class Progress {
 public:
  using Clock = std::function<double()>;  // seconds since an arbitrary start

  // `what` names the work in a word or two, `total` is its number of steps (at least 0).
  Progress(std::ostream& out, ProgressMode mode, std::string what, std::int64_t total);
  Progress(std::ostream& out, ProgressMode mode, std::string what, std::int64_t total, Clock clock,
           std::size_t columns);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // clears the moving line

  // Adds `steps` finished steps; `note` describes them (shown on a terminal).
  void advance(std::int64_t steps = 1, std::string_view note = "");

 private:
  void draw(std::string_view note, double now);
  void print_line(double now);
  std::string summary(double now) const;

  std::ostream& out_;
  ProgressMode mode_;
  std::string what_;
  std::int64_t total_;
  Clock clock_;
  std::size_t columns_;
  std::int64_t done_ = 0;
  std::int64_t tenths_reported_ = 0;
  double started_;
  double last_drawn_;
  bool line_is_drawn_ = false;
};

// "45 s", "3 min 20 s", "1 h 5 min".
std::string duration_text(double seconds);

}  // namespace memfathom
