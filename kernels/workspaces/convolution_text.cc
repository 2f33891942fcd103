#include "kernels/workspaces/convolution_text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

#include "core/error.h"

namespace memfathom {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Error(ErrorKind::kInput,
              fmt::format("\"{}\" is not a {} query: {}", text.substr(0, 200),
                          text.starts_with("fft") ? "transform" : "convolution", why));
}

class Words {
 public:
  explicit Words(std::string_view text) : text_(text), rest_(text) {}

  bool empty() const { return rest_.empty(); }

  std::string_view next() {
    const std::size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    return word;
  }

  // "x[1,2,3]" with prefix "x".
  Shape shape(std::string_view prefix) {
    std::string_view word = next();
    if (!word.starts_with(prefix)) refuse(text_, fmt::format("\"{}\" is missing", prefix));
    word.remove_prefix(prefix.size());
    if (word.size() < 2 || word.front() != '[' || word.back() != ']')
      refuse(text_, "a list in brackets is expected");
    word = word.substr(1, word.size() - 2);
    Shape shape;
    while (!word.empty()) {
      if (shape.rank() == Shape::kMaxRank) refuse(text_, "a list has too many numbers");
      const std::size_t end = word.find(',');
      shape.push_back(number(word.substr(0, end)));
      word = end == std::string_view::npos ? std::string_view{} : word.substr(end + 1);
    }
    return shape;
  }

  std::int64_t number(std::string_view digits) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size())
      refuse(text_, "a number is expected");
    return value;
  }

 private:
  std::string_view text_;
  std::string_view rest_;
};

}  // namespace

ConvolutionQuery parse_convolution_query(std::string_view text) {
  Words words(text);
  ConvolutionQuery query;
  query.transposed = words.next() == "conv_transpose";
  const std::string_view kind = words.next();
  bool known = false;
  for (const ConvolutionKind candidate : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                          ConvolutionKind::kWeightGradient}) {
    if (kind == to_string(candidate)) {
      query.kind = candidate;
      known = true;
    }
  }
  if (!known) refuse(text, "its kind is unknown");
  const std::optional<DType> dtype = parse_dtype(words.next());
  if (!dtype) refuse(text, "its element type is unknown");
  query.dtype = *dtype;
  query.channels_last = words.next() == "nhwc";
  query.input = words.shape("x");
  query.weight = words.shape("w");
  query.stride = words.shape("s");
  query.padding = words.shape("p");
  query.dilation = words.shape("d");
  const std::string_view groups = words.next();
  if (!groups.starts_with("g")) refuse(text, "\"g\" is missing");
  query.groups = words.number(groups.substr(1));
  if (!words.empty()) {
    const Words before = words;
    if (words.next() == "benchmark") {
      query.benchmark = true;
    } else {
      words = before;
      query.output_padding = words.shape("op");
      query.benchmark = words.next() == "benchmark";
    }
  }
  // One comparison catches what the lenient steps above let through.
  if (to_string(query) != text) refuse(text, "it is not in canonical form");
  return query;
}

FftQuery parse_fft_query(std::string_view text) {
  Words words(text);
  FftQuery query;
  if (words.next() != "fft") refuse(text, "it does not begin with fft");
  const std::string_view kind = words.next();
  bool known = false;
  for (const FftKind candidate :
       {FftKind::kRealToComplex, FftKind::kComplexToReal, FftKind::kComplexToComplex}) {
    if (kind == to_string(candidate)) {
      query.kind = candidate;
      known = true;
    }
  }
  if (!known) refuse(text, "its kind is unknown");
  const std::optional<DType> dtype = parse_dtype(words.next());
  if (!dtype) refuse(text, "its element type is unknown");
  query.dtype = *dtype;
  query.extents = words.shape("n");
  const std::string_view batch = words.next();
  if (!batch.starts_with("b") || !words.empty()) refuse(text, "a batch is expected at its end");
  query.batch = words.number(batch.substr(1));
  return query;
}

}  // namespace memfathom
