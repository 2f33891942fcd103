// ImageSource: what turns the pictures of a batch into tokens of a language model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// The pictures of one forward pass, and what Python's names keep alive until it returns.
struct ShownImages {
  Tensor features;             // [tokens of all pictures, hidden]
  std::vector<Tensor> deeper;  // added after the first blocks, one each
  Tensor places;               // which positions they take
  std::vector<Tensor> held;
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;

  // Puts the pictures of so many samples on the device in place of those before.
  virtual void load(std::int64_t samples) = 0;
  virtual ShownImages show() = 0;

  // Positions of a sample that its pictures take; 0: the job shows none.
  virtual std::int64_t tokens() const = 0;
  // Whether the tokens of a picture see those after them, which no kernel's flag says.
  virtual bool sees_both_ways() const { return false; }
  // Whether positions count in time, height and width, for every sample apart.
  virtual bool counts_in_three() const { return false; }
};

// The embeddings [b, s, h] with the pictures' in their places: masked_scatter.
Tensor place_images(const Tensor& embeddings, const Tensor& ids, ShownImages& shown);

// What is added at the pictures' places after block `index`, one of the first `deeper`.
Tensor add_deeper_images(const Tensor& hidden, const ShownImages& shown, std::size_t index);

}  // namespace memfathom
