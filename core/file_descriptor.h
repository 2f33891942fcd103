// FileDescriptor: owns an open file, pipe or socket; and writing a whole text to one.
#pragma once

#include <string_view>

namespace memfathom {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}  // the result of open(), -1 included
  ~FileDescriptor() { reset(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset();  // closes it

 private:
  int number_;
};

// Returns 0 or the errno of the failed write. Restarts after signals.
int write_all(const FileDescriptor& file, std::string_view text);

}  // namespace memfathom
