// FileDescriptor: an open file, pipe or socket that is closed in time; and writing a whole text to
// one.
#pragma once

#include <string_view>

namespace memfathom {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}  // what open() gave, -1 included
  ~FileDescriptor() { reset(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset();  // closes it now

 private:
  int number_;
};

// 0, or errno of the write that failed. A signal interrupts nothing.
int write_all(const FileDescriptor& file, std::string_view text);

}  // namespace memfathom
