#include "kernels/workspaces/workspace_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include "core/file_descriptor.h"

namespace memfathom {
namespace {

constexpr std::uintmax_t kMergeAt = 256 << 10;     // bytes of log: about a millisecond to read
constexpr std::uintmax_t kMaxLogBytes = 64 << 20;  // anything larger was not written by us

std::uint32_t checksum(std::string_view text) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

std::string line_of(std::string_view query, std::int64_t bytes) {
  const std::string body = fmt::format("{}\t{}", query, bytes);
  return fmt::format("{}\t{:08x}\n", body, checksum(body));
}

// The answer in a line (without its newline), if the line is whole.
std::optional<std::pair<std::string_view, std::int64_t>> read_line(std::string_view line) {
  const std::size_t second = line.rfind('\t');
  if (second == std::string_view::npos || second == 0) return std::nullopt;
  const std::size_t first = line.rfind('\t', second - 1);
  if (first == std::string_view::npos) return std::nullopt;
  const std::string_view sum = line.substr(second + 1);
  std::uint32_t expected = 0;
  const auto [sum_end, sum_error] =
      std::from_chars(sum.data(), sum.data() + sum.size(), expected, 16);
  if (sum.size() != 8 || sum_error != std::errc{} || sum_end != sum.data() + sum.size())
    return std::nullopt;
  if (checksum(line.substr(0, second)) != expected) return std::nullopt;
  const std::string_view digits = line.substr(first + 1, second - first - 1);
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  if (error != std::errc{} || end != digits.data() + digits.size() ||
      bytes < CachedWorkspace::kRefused)
    return std::nullopt;
  return std::pair{line.substr(0, first), bytes};
}

template <typename Take>
void for_each_answer(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return;  // a line being written, or cut off
    if (const auto answer = read_line(text.substr(0, end))) take(answer->first, answer->second);
    text.remove_prefix(end + 1);
  }
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMaxLogBytes) return {};
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::filesystem::path with_suffix(const std::filesystem::path& stem, const char* suffix) {
  std::filesystem::path path = stem;
  path += suffix;
  return path;
}

int opened(const std::filesystem::path& path, int flags) {
  return open(path.c_str(), flags | O_CLOEXEC, 0644);
}

}  // namespace

WorkspaceStore::WorkspaceStore(std::filesystem::path stem) : stem_(std::move(stem)) {
  if (stem_.empty()) return;
  // The log before the sorted file: a merge in between moves answers from the first to the second,
  // so none is missed.
  for_each_answer(read_file(with_suffix(stem_, ".log")),
                  [&](std::string_view query, std::int64_t bytes) {
                    recent_.insert_or_assign(std::string(query), bytes);
                  });
  map_sorted();
}

WorkspaceStore::~WorkspaceStore() { unmap_sorted(); }

void WorkspaceStore::map_sorted() {
  const FileDescriptor file(opened(with_suffix(stem_, ".sorted"), O_RDONLY));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0)
    return;
  void* mapped = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE,
                      file.get(), 0);
  if (mapped == MAP_FAILED) return;
  sorted_ = static_cast<const char*>(mapped);
  sorted_size_ = static_cast<std::size_t>(status.st_size);
}

void WorkspaceStore::unmap_sorted() {
  if (sorted_ != nullptr) munmap(const_cast<char*>(sorted_), sorted_size_);
  sorted_ = nullptr;
  sorted_size_ = 0;
}

std::optional<std::int64_t> WorkspaceStore::find(std::string_view query) const {
  if (const auto found = recent_.find(query); found != recent_.end()) return found->second;
  // Halving over bytes: each step looks at the line that holds the middle byte.
  const std::string_view text(sorted_, sorted_size_);
  std::size_t low = 0;
  std::size_t high = text.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const std::size_t before = middle == 0 ? std::string_view::npos : text.rfind('\n', middle - 1);
    const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t newline = text.find('\n', start);
    const std::size_t end = newline == std::string_view::npos ? text.size() : newline;
    const std::string_view line = text.substr(start, end - start);
    const std::string_view key = line.substr(0, line.find('\t'));
    if (key == query) {
      const auto answer = read_line(line);
      return answer ? std::optional(answer->second) : std::nullopt;
    }
    if (key < query) {
      low = end + 1;
    } else {
      high = start;
    }
  }
  return std::nullopt;
}

void WorkspaceStore::append(std::span<const CachedWorkspace> answers) {
  std::string lines;
  for (const CachedWorkspace& answer : answers) {
    recent_.insert_or_assign(answer.query, answer.bytes);
    lines += line_of(answer.query, answer.bytes);
  }
  if (stem_.empty() || lines.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(stem_.parent_path(), error);
  const FileDescriptor lock(opened(with_suffix(stem_, ".lock"), O_RDWR | O_CREAT));
  if (!lock || flock(lock.get(), LOCK_EX) != 0) return;
  {
    const FileDescriptor log(opened(with_suffix(stem_, ".log"), O_RDWR | O_APPEND | O_CREAT));
    if (!log) return;
    // A writer that was cut off leaves half a line: end it, or it would swallow our first one.
    const off_t size = lseek(log.get(), 0, SEEK_END);
    char last = '\n';
    if (size > 0 && pread(log.get(), &last, 1, size - 1) == 1 && last != '\n')
      lines.insert(0, 1, '\n');
    if (write_all(log, lines) != 0) return;
  }
  if (std::filesystem::file_size(with_suffix(stem_, ".log"), error) > kMergeAt && !error)
    merge_log();
}

// Under the lock. The new sorted file replaces the old by renaming, so that readers keep a whole
// one.
void WorkspaceStore::merge_log() {
  std::map<std::string, std::int64_t, std::less<>> merged;
  const auto add = [&](std::string_view query, std::int64_t bytes) {
    merged.insert_or_assign(std::string(query), bytes);
  };
  unmap_sorted();
  map_sorted();
  for_each_answer(std::string_view(sorted_, sorted_size_), add);
  for_each_answer(read_file(with_suffix(stem_, ".log")), add);
  std::string text;
  for (const auto& [query, bytes] : merged) text += line_of(query, bytes);

  const std::filesystem::path fresh = with_suffix(stem_, ".new");
  {
    const FileDescriptor file(opened(fresh, O_WRONLY | O_CREAT | O_TRUNC));
    if (!file || write_all(file, text) != 0) return;
  }
  std::error_code error;
  std::filesystem::rename(fresh, with_suffix(stem_, ".sorted"), error);
  if (error) return;
  std::filesystem::resize_file(with_suffix(stem_, ".log"), 0, error);
  unmap_sorted();
  map_sorted();
}

std::filesystem::path default_cache_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::filesystem::path(cache) / "memfathom";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::filesystem::path(home) / ".cache" / "memfathom";
  }
  return {};
}

}  // namespace memfathom
