// ImageSource: what turns the images of a batch into tokens of a language model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// The images of one forward pass, and what Python's names keep alive until it returns.
struct ImageFeatures {
  Tensor features;             // [tokens of all images, hidden]
  std::vector<Tensor> deeper;  // added after the first blocks, one each
  Tensor places;               // which positions they take
  std::vector<Tensor> held;
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;

  // Puts the images of so many samples on the device in place of those before.
  virtual void load(std::int64_t samples) = 0;
  virtual ImageFeatures show() = 0;

  // Positions of a sample that its images take; 0: the job shows none.
  virtual std::int64_t tokens() const = 0;
  // Whether the tokens of an image see those after them, which no kernel's flag says.
  virtual bool is_bidirectional() const { return false; }
  // Whether positions count in time, height and width, for every sample apart.
  virtual bool has_3d_positions() const { return false; }
};

// The embeddings [b, s, h] with the images' in their places: masked_scatter.
Tensor scatter_image_features(const Tensor& embeddings, const Tensor& ids, ImageFeatures& shown);

// What is added at the images' places after block `index`, one of the first `deeper`.
Tensor add_deepstack_features(const Tensor& hidden, const ImageFeatures& shown, std::size_t index);

}  // namespace memfathom
