// Descriptor: an open file, pipe or socket that is closed in time; and writing a whole text to one.
#pragma once

#include <string_view>

namespace memfathom {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}  // what open() gave, -1 included
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset();  // closes it now

 private:
  int number_;
};

// 0, or errno of the write that failed. A signal interrupts nothing.
int write_all(const Descriptor& file, std::string_view text);

}  // namespace memfathom
