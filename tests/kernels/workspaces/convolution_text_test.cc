#include "kernels/workspaces/convolution_text.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/workspaces/fit/design.h"

namespace memfathom {
namespace {

TEST(ConvolutionTextTest, ReadsEveryQueryBackFromItsText) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    for (const bool channels_last : {false, true}) {
      ConvolutionQuery query = draw_convolution(
          random, {static_cast<ConvolutionKind>(i % 3), DType::kFp16, channels_last});
      query.benchmark = i % 2 == 0;
      query.transposed = i % 5 == 0;
      if (i % 7 == 0) query.output_padding = query.padding;
      EXPECT_EQ(parse_convolution_query(to_string(query)), query) << to_string(query);
    }
  }
}

// Queries with one field changed each, `base` first. The structured bindings fail to compile when a
// query has a new field: change it as well, or two queries share an entry of the cache.
template <typename Query>
class Changed {
 public:
  explicit Changed(const Query& base) : base_(base), query_(base), all_{base} {}
  Query& query() { return query_; }
  template <typename Field, typename Value>
  void set(Field& field, const Value& value) {
    field = value;
    all_.push_back(query_);
    query_ = base_;
  }
  const std::vector<Query>& all() const { return all_; }

 private:
  Query base_, query_;
  std::vector<Query> all_;
};

std::vector<ConvolutionQuery> changed_convolutions() {
  Changed<ConvolutionQuery> changed({ConvolutionKind::kForward,
                                     {8, 4, 16, 16},
                                     {4, 4, 3, 3},
                                     {1, 1},
                                     {1, 1},
                                     {},
                                     {1, 1},
                                     1,
                                     false,
                                     false,
                                     false,
                                     DType::kFp32});
  auto& [kind, input, weight, stride, padding, output_padding, dilation, groups, transposed,
         channels_last, benchmark, dtype] = changed.query();
  changed.set(kind, ConvolutionKind::kDataGradient);
  changed.set(input, Shape{8, 4, 32, 16});
  changed.set(weight, Shape{8, 4, 3, 3});
  changed.set(stride, Shape{2, 1});
  changed.set(padding, Shape{0, 1});
  changed.set(output_padding, Shape{1, 1});
  changed.set(dilation, Shape{2, 2});
  changed.set(groups, 2);
  changed.set(transposed, true);
  changed.set(channels_last, true);
  changed.set(benchmark, true);
  changed.set(dtype, DType::kFp16);
  return changed.all();
}

std::vector<FftQuery> changed_transforms() {
  Changed<FftQuery> changed({FftKind::kRealToComplex, {64, 64}, 2, DType::kFp32});
  auto& [kind, extents, batch, dtype] = changed.query();
  changed.set(kind, FftKind::kComplexToReal);
  changed.set(extents, Shape{64, 32});
  changed.set(batch, 3);
  changed.set(dtype, DType::kFp64);
  return changed.all();
}

std::vector<AttentionQuery> changed_attentions() {
  Changed<AttentionQuery> changed(
      {false, false, DType::kFp16, {2, 8, 128, 64}, {2, 8, 128, 64}, {}});
  auto& [backward, causal, dtype, q, k, strides] = changed.query();
  changed.set(backward, true);
  changed.set(causal, true);
  changed.set(dtype, DType::kBf16);
  changed.set(q, Shape{2, 8, 64, 64});
  changed.set(k, Shape{2, 4, 128, 64});
  auto& [sq, sk, sv, sout, sdout, sdq, sdk, sdv] = strides;
  for (Shape* shape : {&sq, &sk, &sv, &sout, &sdout, &sdq, &sdk, &sdv})
    changed.set(*shape, Shape{65536, 64, 512, 1});
  return changed.all();
}

template <typename Query>
std::set<std::string> texts_of(const std::vector<Query>& queries) {
  std::set<std::string> texts;
  for (const Query& query : queries) texts.insert(to_string(query));
  return texts;
}

TEST(ConvolutionTextTest, QueriesThatDifferInAnyFieldHaveDifferentTexts) {
  EXPECT_EQ(texts_of(changed_convolutions()).size(), changed_convolutions().size());
  EXPECT_EQ(texts_of(changed_transforms()).size(), changed_transforms().size());
  EXPECT_EQ(texts_of(changed_attentions()).size(), changed_attentions().size());
}

TEST(ConvolutionTextTest, EveryFieldIsReadBackFromTheText) {
  for (const ConvolutionQuery& query : changed_convolutions())
    EXPECT_EQ(parse_convolution_query(to_string(query)), query) << to_string(query);
  for (const FftQuery& query : changed_transforms())
    EXPECT_EQ(parse_fft_query(to_string(query)), query) << to_string(query);
}

TEST(ConvolutionTextTest, RefusesAnyOtherText) {
  const std::string good = "conv forward fp16 nhwc x[1,3,8,8] w[4,3,3,3] s[1,1] p[1,1] d[1,1] g1";
  EXPECT_NO_THROW(parse_convolution_query(good));
  for (const std::string& text :
       {std::string(), std::string("conv"), good + " ", good + " x", " " + good,
        std::string("conv sideways fp16 nhwc x[1]"),
        std::string("conv forward fp17 nhwc x[1,3,8,8] w[4,3,3,3] s[1,1] p[1,1] d[1,1] g1"),
        std::string("conv forward fp16 nhcw x[1,3,8,8] w[4,3,3,3] s[1,1] p[1,1] d[1,1] g1"),
        std::string("conv forward fp16 nhwc x[1,3,8,8 w[4,3,3,3] s[1,1] p[1,1] d[1,1] g1"),
        std::string("conv forward fp16 nhwc x[1,2,3,4,5,6,7,8,9] w[4] s[1] p[1] d[1] g1"),
        std::string("conv forward fp16 nhwc x[1,99999999999999999999] w[4] s[1] p[1] d[1] g1"),
        std::string("conv forward fp16 nhwc x[01] w[4] s[1] p[1] d[1] g1")}) {
    EXPECT_THROW(parse_convolution_query(text), Error) << text;
  }
}

}  // namespace
}  // namespace memfathom
