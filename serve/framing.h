// Framing: "WORD LENGTH\n" and so many bytes, between the server and a worker.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/parse_number.h"

namespace memfathom {

using Deadline = std::chrono::steady_clock::time_point;

struct Frame {
  std::string word;
  std::string text;
};

// False if the other side is gone.
inline bool send_frame(int socket, std::string_view word, std::string_view text) {
  std::string bytes = std::string(word) + ' ' + std::to_string(text.size()) + '\n';
  bytes += text;
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t sent = send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Nothing at the end of the stream, and at the deadline. Without one it waits.
inline std::optional<Frame> receive_frame(int socket, std::optional<Deadline> deadline) {
  constexpr std::size_t kPart = 65536;
  constexpr std::size_t kMaxFrame = std::size_t{1} << 30;
  std::string bytes;
  std::optional<std::size_t> whole;
  std::size_t header = 0;
  while (!whole || bytes.size() < *whole) {
    int wait = -1;
    if (deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          *deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return std::nullopt;
      wait = static_cast<int>(left.count());
    }
    pollfd readable{socket, POLLIN, 0};
    if (poll(&readable, 1, wait) <= 0) return std::nullopt;
    const std::size_t before = bytes.size();
    bytes.resize(before + kPart);
    const ssize_t got = read(socket, bytes.data() + before, kPart);
    if (got <= 0) return std::nullopt;
    bytes.resize(before + static_cast<std::size_t>(got));
    if (whole) continue;
    const std::size_t end = bytes.find('\n');
    if (end == std::string::npos) continue;
    const std::size_t blank = bytes.find(' ');
    const std::optional<std::size_t> size =
        blank < end
            ? parse_number<std::size_t>(std::string_view(bytes).substr(blank + 1, end - blank - 1))
            : std::nullopt;
    if (!size || *size > kMaxFrame) return std::nullopt;
    header = end + 1;
    whole = header + *size;
  }
  return Frame{bytes.substr(0, bytes.find(' ')), bytes.substr(header)};
}

}  // namespace memfathom
