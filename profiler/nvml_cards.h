// Which card of the driver a number of the CUDA runtime means.
#pragma once

#include "profiler/nvml_library.h"

namespace memfathom {

struct NvmlCard {
  NvmlLibrary::Handle device = nullptr;  // a card, or one instance of it: whose memory jobs get
  NvmlLibrary::Handle whole = nullptr;   // the card itself
};

// Cards are counted as the CUDA runtime counts them by PCI bus: through CUDA_VISIBLE_DEVICES, and
// of a card that is divided (MIG) its first instance. Cards that are kept from this user do not
// count.
int count_cards(const NvmlLibrary& library);
// Throws Error(kEnvironment) where there is no such card.
NvmlCard find_card(const NvmlLibrary& library, int index);

bool is_divided(const NvmlLibrary& library, NvmlLibrary::Handle card);

}  // namespace memfathom
