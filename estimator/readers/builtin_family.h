// Own family: completes a model that old calculators describe by a width and a depth alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"

namespace memfathom {

bool is_builtin_family(std::string_view name);  // fno, unet, cnn, mlp

// `--model fno --hidden-dim 256 --num-layers 10`, or a width without any model (which the old
// calculator took for a Fourier operator), as model.config of the families fno, unet, cnn and mlp.
// Other models are left alone.
void complete_builtin_family(Node& document, std::vector<std::string>& assumptions);

}  // namespace memfathom
