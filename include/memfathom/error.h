// Error: what every call of a Session throws if it has no answer. Its text is one sentence that
// says what is wrong, where, and what to do; its kind says whose move it is.
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     int main() {
//       try {
//         memfathom::Session().estimate(memfathom::Job("model: {preset: lama-2-7b}"));
//       } catch (const memfathom::Error& error) {
//         std::cout << error.what() << '\n';  // ... did you mean llama-2-7b? ...
//       }
//     }
#pragma once

#include <memfathom/memfathom.h>

#include <stdexcept>
#include <string>

namespace memfathom {
inline namespace v0 {

enum class ErrorKind {
  kInput,        // the job, a file or a value is wrong
  kEnvironment,  // a device, a library or a file system failed
  kInternal,     // a bug of memfathom
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace v0
}  // namespace memfathom
