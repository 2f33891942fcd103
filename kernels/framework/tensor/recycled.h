// Recycled memory for the small objects of a run: tensors, storages, tape nodes and their closures.
//
// A dry run makes and destroys thousands of them per iteration, and hardly anything else. Kept in
// lists by size, the memory of one iteration is that of the next: nothing is searched or merged,
// and what one layer has freed is still in the cache when the next one asks.
#pragma once

#include <cstddef>

namespace memfathom {

// Of this thread; give back what was taken on the same one. Throws std::bad_alloc, and
// Error(kInput) where one thread would come to hold gigabytes.
void* take_recycled(std::size_t bytes);
void give_recycled(void* memory, std::size_t bytes) noexcept;

}  // namespace memfathom
