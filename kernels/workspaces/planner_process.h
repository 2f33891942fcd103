// PlannerProcess: one running memfathom-cudnn-planner, spoken to in lines over a socket pair.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace memfathom {

struct PlannerCommand {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  // Put first in the child's LD_LIBRARY_PATH: chooses among several versions of cuDNN. Empty: leave
  // it alone.
  std::filesystem::path library_directory;
};

class PlannerProcess {
 public:
  // Starts it and reads its greeting. Throws Error(kEnvironment) with the reason: not there, no
  // cuDNN, too old a cuDNN.
  explicit PlannerProcess(const PlannerCommand& command);
  ~PlannerProcess();
  PlannerProcess(const PlannerProcess&) = delete;
  PlannerProcess& operator=(const PlannerProcess&) = delete;

  const std::string& cudnn_version() const { return cudnn_version_; }

  // Sends the lines and returns as many. Throws Error(kEnvironment) if the child ends or stays
  // silent for half a minute.
  std::vector<std::string> ask(std::span<const std::string> lines);

 private:
  std::string read_line();
  void stop();
  [[noreturn]] void fail(std::string_view when);

  std::filesystem::path program_;
  pid_t child_ = -1;
  int socket_ = -1;  // both directions
  int errors_ = -1;  // what the child writes to standard error
  std::string buffer_;
  std::string cudnn_version_;
};

}  // namespace memfathom
