// Error: the one exception type; its kind decides the exit code (cli/exit_code.h).
#pragma once

#include <stdexcept>
#include <string>

namespace memfathom {

enum class ErrorKind {
  kUsage,        // the command line is wrong: exit 2
  kInput,        // a file, a job or a value is wrong: exit 2
  kEnvironment,  // a device, a library, a file system failed: exit 4
  kOutOfMemory,  // the device is out of memory; an expected result: exit 4 unless handled
  kInternal,     // a bug in memfathom: exit 70
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// "usage", "input", "environment", "out_of_memory", "internal": used in JSON errors.
const char* to_string(ErrorKind kind);

}  // namespace memfathom
