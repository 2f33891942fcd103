#include "kernels/memory/trace/gzip.h"

#include <zlib.h>

#include <array>
#include <istream>
#include <ostream>

#include "core/error.h"

namespace memfathom {

namespace {

constexpr std::size_t kChunk = 64 << 10;
constexpr int kGzipWindow = 15 + 16;  // zlib's encoding for gzip framing

}  // namespace

struct LineReader::Inflater {
  z_stream stream{};
  std::array<char, kChunk> input{};
  bool in_member = true;

  Inflater() {
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) {
      throw Error(ErrorKind::kEnvironment,
                  "zlib could not start decompressing; is memory exhausted?");
    }
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

LineReader::LineReader(std::istream& input, std::size_t max_line_bytes)
    : input_(input), max_line_bytes_(max_line_bytes) {}

LineReader::~LineReader() = default;

LineReader::Status LineReader::next(std::string& line) {
  line.clear();
  bool anything = false;
  while (true) {
    if (at_ == buffer_.size()) {
      if (!refill()) {
        if (corrupt_) return ++number_, Status::kCorrupt;
        if (anything) ++number_;
        return anything ? Status::kLine : Status::kEnd;
      }
      continue;
    }
    anything = true;
    const std::size_t end = buffer_.find('\n', at_);
    const std::size_t stop = end == std::string::npos ? buffer_.size() : end;
    if (line.size() + (stop - at_) > max_line_bytes_) return ++number_, Status::kTooLong;
    line.append(buffer_, at_, stop - at_);
    at_ = stop;
    if (end == std::string::npos) continue;
    ++at_;
    ++number_;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return Status::kLine;
  }
}

bool LineReader::refill() {
  if (corrupt_) return false;
  at_ = 0;
  buffer_.resize(kChunk);
  if (!inflater_) {
    input_.read(buffer_.data(), static_cast<std::streamsize>(kChunk));
    buffer_.resize(static_cast<std::size_t>(input_.gcount()));
    const bool gzipped =
        !started_ && buffer_.size() >= 2 && buffer_[0] == '\x1f' && buffer_[1] == '\x8b';
    started_ = true;
    if (!gzipped) return !buffer_.empty();
    inflater_ = std::make_unique<Inflater>();
    const std::size_t taken = buffer_.copy(inflater_->input.data(), buffer_.size());
    inflater_->stream.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
    inflater_->stream.avail_in = static_cast<uInt>(taken);
    buffer_.resize(kChunk);
  }
  z_stream& stream = inflater_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(buffer_.data());
  stream.avail_out = static_cast<uInt>(kChunk);
  while (stream.avail_out == kChunk) {
    if (stream.avail_in == 0) {
      input_.read(inflater_->input.data(), static_cast<std::streamsize>(kChunk));
      stream.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
      stream.avail_in = static_cast<uInt>(input_.gcount());
      if (stream.avail_in == 0) {
        corrupt_ = inflater_->in_member;  // the file ends inside the compressed data
        break;
      }
    }
    if (!inflater_->in_member) {  // gzip files may be concatenated
      if (inflateReset(&stream) != Z_OK) corrupt_ = true;
      inflater_->in_member = true;
    }
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      inflater_->in_member = false;
    } else if (status != Z_OK) {
      corrupt_ = true;
      break;
    }
  }
  buffer_.resize(kChunk - stream.avail_out);
  return !buffer_.empty();
}

struct GzipWriter::Deflater {
  z_stream stream{};
  std::array<char, kChunk> output{};

  Deflater() {
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw Error(ErrorKind::kEnvironment,
                  "zlib could not start compressing; is memory exhausted?");
    }
  }
  ~Deflater() { deflateEnd(&stream); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
};

GzipWriter::GzipWriter(std::ostream& output)
    : output_(output), deflater_(std::make_unique<Deflater>()) {}

GzipWriter::~GzipWriter() = default;

void GzipWriter::write(std::string_view text) {
  z_stream& stream = deflater_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(text.size());
  run(Z_NO_FLUSH);
}

void GzipWriter::finish() { run(Z_FINISH); }

void GzipWriter::run(int flush) {
  z_stream& stream = deflater_->stream;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(deflater_->output.data());
    stream.avail_out = static_cast<uInt>(kChunk);
    deflate(&stream, flush);
    output_.write(deflater_->output.data(),
                  static_cast<std::streamsize>(kChunk - stream.avail_out));
  } while (stream.avail_out == 0);
}

}  // namespace memfathom
