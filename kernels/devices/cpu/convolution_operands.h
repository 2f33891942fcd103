// What convolutions of every implementation do with a call: shapes, the layout of the workspace,
// and operands in the form that is computed in.
#pragma once

#include <memory>

#include "kernels/devices/cpu/gather.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

// The shape of the map (or, transposed, of the image) follows from the query as in PyTorch.
Shape result_shape(const ConvolutionQuery& query);

// Map, image or weight: see convolution_roles.h.
ConvolutionKind written(const ConvolutionQuery& query);

// Dense strides, channels first ([N, C, space...]) or last.
Shape layout_strides(const Shape& shape, bool channels_last);

// A part of the workspace; unused if its size is 0.
struct Piece {
  std::int64_t offset = 0;
  std::int64_t size = 0;
};

// Puts a piece at the end of a workspace of so many bytes.
void place(Piece& piece, std::int64_t size, std::int64_t& workspace);

// The workspace of one call: the caller's, or our own if that is too small.
class Workspace {
 public:
  Workspace(const Operand& given, std::int64_t needed) {
    const bool enough = given && given.shape.elements() >= needed;
    if (!enough && needed > 0) own_ = scratch<char>(needed);
    data_ = enough ? static_cast<char*>(given.data) : own_.get();
  }
  void* at(const Piece& piece) { return piece.size > 0 ? data_ + piece.offset : nullptr; }

 private:
  std::unique_ptr<char[]> own_;
  char* data_ = nullptr;
};

// An operand in fp32 and a dense layout. Others are copied, and copied back after a write.
class Side {
 public:
  Side(const Operand& t, bool channels_last, void* copy);
  void* data() const { return data_; }
  void read() const;
  void write_back() const;

 private:
  Operand operand_, dense_;
  std::unique_ptr<float[]> own_;
  void* data_ = nullptr;
};

}  // namespace memfathom::cpu
