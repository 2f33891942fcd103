#include "tests/cli/binary.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Outcome run_binary(const std::vector<std::string>& words,
                   const std::vector<std::string>& environment) {
  const TemporaryDirectory folder;
  const std::string out_path = (folder / "out").string();
  const std::string err_path = (folder / "err").string();
  std::vector<std::string> line{MEMFATHOM_BINARY};
  line.insert(line.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(out_path.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    dup2(open(err_path.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    setenv("MEMFATHOM_NVML", "/nonexistent", 1);  // tests do not depend on the machine's GPUs
    for (const std::string& pair : environment) {
      setenv(pair.substr(0, pair.find('=')).c_str(), pair.substr(pair.find('=') + 1).c_str(), 1);
    }
    execv(MEMFATHOM_BINARY, arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(out_path),
          content_of(err_path)};
}

}  // namespace memfathom
