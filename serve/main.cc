// memfathom-serve: started by `memfathom serve` (cli/serve/serve.cc), which reads the options and
// checks them.
//
// memfathom-serve HOST PORT SECONDS WORKERS DATABASE PROGRAM; the token is in MEMFATHOM_TOKEN. With
// --worker it is one. memfathom-serve --admission HOST PORT SECONDS WORKERS DATABASE CERTIFICATE
// KEY PROBABILITY GPU is the webhook.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/parse_number.h"
#include "serve/admission_server.h"
#include "serve/page_server.h"
#include "serve/worker.h"

namespace {

void run_admission(const std::vector<std::string>& words) {
  using memfathom::parse_number;
  memfathom::AdmissionOptions options;
  options.host = words[1];
  options.port = parse_number<int>(words[2]).value_or(0);
  options.limit = std::chrono::seconds(parse_number<int>(words[3]).value_or(1));
  options.workers = parse_number<std::size_t>(words[4]).value_or(1);
  options.database = words[5];
  options.certificate = words[6];
  options.key = words[7];
  options.probability = parse_number<double>(words[8]).value_or(options.probability);
  options.gpu = words[9];
  memfathom::serve_admission(options);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  constexpr std::size_t kWords = 6, kAdmissionWords = 10;
  try {
    if (words.size() == 2 && words[0] == "--worker") return memfathom::run_worker(words[1]);
    if (words.size() == kAdmissionWords && words[0] == "--admission") {
      run_admission(words);
      return 0;
    }
    if (words.size() != kWords) {
      std::fputs("memfathom-serve: use memfathom serve, which starts it\n", stderr);
      return 2;
    }
    memfathom::ServeOptions options;
    options.host = words[0];
    options.port = memfathom::parse_number<int>(words[1]).value_or(0);
    options.limit = std::chrono::seconds(memfathom::parse_number<int>(words[2]).value_or(1));
    options.workers = memfathom::parse_number<std::size_t>(words[3]).value_or(1);
    options.database = words[4];
    options.program = words[5];
    if (const char* token = std::getenv("MEMFATHOM_TOKEN")) options.token = token;
    unsetenv("MEMFATHOM_TOKEN");  // not for the workers and their environment
    memfathom::serve(options);
    return 0;
  } catch (const memfathom::Error& error) {
    std::fprintf(stderr, "memfathom: %s\n", error.what());
    return error.kind() == memfathom::ErrorKind::kEnvironment ? 4 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "memfathom: %s\n", error.what());
    return 70;
  }
}
