// The HTTP interface: the page, and the questions of the C interface as JSON (serve/openapi.json).
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace memfathom {

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 0;          // 0: any free one
  std::string token;     // empty: none is asked for
  std::string database;  // empty: none
  std::string program;   // memfathom, for the status
  std::chrono::milliseconds limit{20'000};
  std::size_t workers = 2;
};

// Serves until a signal ends the process. Prints the address to standard output. Throws Error.
void serve(const ServeOptions& options);

}  // namespace memfathom
