#include "serve/sealed.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace memfathom {
namespace {

constexpr std::array kRefused{
#ifdef SYS_open  // newer architectures have openat alone
    SYS_open,   SYS_creat,   SYS_fork,   SYS_vfork,
#endif
    SYS_openat, SYS_openat2, SYS_execve, SYS_execveat, SYS_socket, SYS_connect, SYS_ptrace};

constexpr sock_filter statement(std::uint16_t code, std::uint32_t value) {
  return {code, 0, 0, value};
}

// Jumps `yes` or `no` statements ahead.
constexpr sock_filter jump(std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
  return {BPF_JMP | BPF_JEQ | BPF_K, yes, no, value};
}

}  // namespace

void seal_process() {
  std::vector<sock_filter> filter;
  filter.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (std::size_t i = 0; i < kRefused.size(); ++i) {
    const auto to_refusal = static_cast<std::uint8_t>(kRefused.size() - i);
    filter.push_back(jump(static_cast<std::uint32_t>(kRefused[i]), to_refusal, 0));
  }
  filter.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  filter.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("the worker cannot be sealed with seccomp: {}", std::strerror(errno)));
  }
}

}  // namespace memfathom
