#include "core/workspace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>
#include <utility>

namespace memfathom {
namespace {

std::string compact(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

}  // namespace

const char* to_string(Library library) { return enum_name(library).data(); }

std::optional<Library> parse_library(std::string_view text) {
  return enum_from_name<Library>(text);
}

const char* to_string(ConvolutionKind kind) { return enum_name(kind).data(); }

const char* to_string(FftKind kind) { return enum_name(kind).data(); }

std::string to_string(const ConvolutionQuery& query) {
  // What is off or zero is left out, so the common texts stay short; each optional part has its own
  // prefix.
  std::string text = fmt::format(
      "{} {} {} {} x{} w{} s{} p{} d{} g{}", query.transposed ? "conv_transpose" : "conv",
      to_string(query.kind), to_string(query.dtype), query.channels_last ? "nhwc" : "nchw",
      compact(query.input), compact(query.weight), compact(query.stride), compact(query.padding),
      compact(query.dilation), query.groups);
  if (query.output_padding.rank() > 0) text += fmt::format(" op{}", compact(query.output_padding));
  if (query.benchmark) text += " benchmark";
  return text;
}

std::string to_string(const FftQuery& query) {
  return fmt::format("fft {} {} n{} b{}", to_string(query.kind), to_string(query.dtype),
                     compact(query.extents), query.batch);
}

std::string to_string(const AttentionQuery& query) {
  std::string text = fmt::format("attention {} {}{} q{} k{}",
                                 query.backward ? "backward" : "forward", to_string(query.dtype),
                                 query.causal ? " causal" : "", compact(query.q), compact(query.k));
  const AttentionQuery::Strides& s = query.strides;
  const std::initializer_list<std::pair<const char*, const Shape&>> all{
      {"q", s.q},       {"k", s.k},   {"v", s.v},   {"out", s.out},
      {"dout", s.dout}, {"dq", s.dq}, {"dk", s.dk}, {"dv", s.dv}};
  for (const auto& [name, strides] : all) {
    if (strides.rank() > 0) text += fmt::format(" {}/{}", name, compact(strides));
  }
  return text;
}

}  // namespace memfathom
