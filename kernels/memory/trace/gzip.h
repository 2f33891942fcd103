// Gzip streams: reading lines from plain or gzipped input, writing gzipped output.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace memfathom {

// Lines of a stream, decompressed if it starts like gzip. Memory is bounded for any input.
class LineReader {
 public:
  enum class Status : std::uint8_t { kLine, kEnd, kTooLong, kCorrupt };

  LineReader(std::istream& input, std::size_t max_line_bytes);
  ~LineReader();

  Status next(std::string& line);                  // without its newline
  std::int64_t number() const { return number_; }  // of the last line, from 1

 private:
  struct Inflater;

  bool refill();  // false at the end; sets corrupt_

  std::istream& input_;
  std::size_t max_line_bytes_;
  std::unique_ptr<Inflater> inflater_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::int64_t number_ = 0;
  bool started_ = false;
  bool corrupt_ = false;
};

class GzipWriter {
 public:
  explicit GzipWriter(std::ostream& output);
  ~GzipWriter();

  void write(std::string_view text);
  void finish();

 private:
  struct Deflater;

  void run(int flush);

  std::ostream& output_;
  std::unique_ptr<Deflater> deflater_;
};

}  // namespace memfathom
