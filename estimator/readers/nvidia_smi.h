// nvidia_smi: what `nvidia-smi` printed, as its table or as the CSV of --query-gpu.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"

namespace memfathom {

struct SeenGpu {
  int index = 0;
  std::string
      product;  // as the driver writes it; the table cuts long names ("RTX 6000 Ada Gene...")
  Bytes total;
  Bytes used;
};

// Every GPU of the text, at most 1024. Throws Error(kInput), with `file`, if it has none.
std::vector<SeenGpu> parse_nvidia_smi(std::string_view text, const std::string& file);

// The GPU that a job on this machine is limited by: the one with that index, else the one with the
// least memory left. Throws Error(kInput) if there is no such index.
const SeenGpu& limiting_gpu(const std::vector<SeenGpu>& gpus, std::optional<int> index,
                            const std::string& file);

// Our name of its product ("rtx-6000-ada"); empty if it is in no table.
std::string name_of(const SeenGpu& gpu);

}  // namespace memfathom
