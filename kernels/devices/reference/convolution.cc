#include "kernels/devices/element/geometry.h"
#include "kernels/devices/reference/convolution_roles.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

// [A, B, space...] with three spatial dimensions, missing leading ones of extent 1.
struct Field {
  Operand operand;
  std::int64_t space[3];
  std::int64_t stride[3];

  explicit Field(const Operand& t) : operand(t) {
    element::space_of(t.shape, space);
    element::space_of(t.strides, stride);
  }
  std::int64_t at(std::int64_t a, std::int64_t b, const std::int64_t (&p)[3]) const {
    return a * operand.strides[0] + b * operand.strides[1] + p[0] * stride[0] + p[1] * stride[1] +
           p[2] * stride[2];
  }
  double get(std::int64_t index) const {
    return element::load<double>(operand.data, operand.dtype, index);
  }
};

// The written operand, in fp64 until everything is summed.
struct Sums {
  std::vector<double> values;

  explicit Sums(const Operand& t) : values(static_cast<std::size_t>(t.shape.elements())) {}

  static std::int64_t index(const Field& f, std::int64_t a, std::int64_t b,
                            const std::int64_t (&p)[3]) {
    return (((a * f.operand.shape[1] + b) * f.space[0] + p[0]) * f.space[1] + p[1]) * f.space[2] +
           p[2];
  }
  void write(const Operand& t) const {
    const element::StridedSpan lane = element::whole(t);
    for (std::size_t i = 0; i < values.size(); ++i)
      lane.set<double>(static_cast<std::int64_t>(i), values[i]);
  }
};

// Visits every product of the convolution once: `pair(n, filter, map position, channel, image
// position, weight position)`.
template <typename Visit>
void for_each_product(const ConvolutionQuery& query, const Field& image, const Field& map,
                      const Field& weight, Visit&& visit) {
  std::int64_t stride[3], padding[3], dilation[3];
  element::three_of(query.stride, 1, stride);
  element::three_of(query.padding, 0, padding);
  element::three_of(query.dilation, 1, dilation);
  const std::int64_t batch = map.operand.shape[0], filters = map.operand.shape[1];
  const std::int64_t channels = weight.operand.shape[1], filters_per_group = filters / query.groups;
  const std::int64_t places = map.space[0] * map.space[1] * map.space[2];
  const std::int64_t taps = weight.space[0] * weight.space[1] * weight.space[2];
  for (std::int64_t place = 0; place < places; ++place) {
    std::int64_t o[3];
    element::plane_position(map.space, place, o);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int64_t k[3], p[3];
      element::plane_position(weight.space, tap, k);
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        p[d] = o[d] * stride[d] - padding[d] + k[d] * dilation[d];
        inside = inside && p[d] >= 0 && p[d] < image.space[d];
      }
      if (!inside) continue;
      for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t f = 0; f < filters; ++f) {
          const std::int64_t first_channel = f / filters_per_group * channels;
          for (std::int64_t c = 0; c < channels; ++c) visit(n, f, o, c, first_channel + c, p, k);
        }
      }
    }
  }
}

}  // namespace

void run_reference(const ConvolutionCall& call) {
  const ConvolutionRoles roles = roles_of(call);
  const Field image(roles.image), map(roles.map), weight(roles.weight);
  const Operand& target = roles.writes == ConvolutionKind::kForward        ? roles.map
                          : roles.writes == ConvolutionKind::kDataGradient ? roles.image
                                                                           : roles.weight;
  Sums sums(target);
  using Position = const std::int64_t(&)[3];
  for_each_product(call.query, image, map, weight,
                   [&](std::int64_t n, std::int64_t f, Position o, std::int64_t c,
                       std::int64_t channel, Position p, Position k) {
                     std::int64_t to = 0;
                     double product = 0;
                     if (roles.writes == ConvolutionKind::kForward) {
                       to = Sums::index(map, n, f, o);
                       product =
                           image.get(image.at(n, channel, p)) * weight.get(weight.at(f, c, k));
                     } else if (roles.writes == ConvolutionKind::kDataGradient) {
                       to = Sums::index(image, n, channel, p);
                       product = map.get(map.at(n, f, o)) * weight.get(weight.at(f, c, k));
                     } else {
                       to = Sums::index(weight, f, c, k);
                       product = map.get(map.at(n, f, o)) * image.get(image.at(n, channel, p));
                     }
                     sums.values[static_cast<std::size_t>(to)] += product;
                   });
  sums.write(target);
}

}  // namespace memfathom
