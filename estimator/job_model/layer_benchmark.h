// Layer benchmark: what a job means that measures layers rather than trains them.
#pragma once

#include <string>
#include <vector>

#include "estimator/job/job.h"

namespace memfathom {

// Layers whose input, itself a leaf, wants a gradient, and no optimizer: nothing learns, the same
// pass is run again and again. Scripts that do this (triton's tutorials and the kernel libraries
// after them) write y.backward(dy, retain_graph=True), so that backward can be timed by itself.
bool is_layer_benchmark(const Job& job);

// Whether backward keeps the graph: what `training.retain_graph` says, else is_layer_benchmark.
bool retains_graph(const Job& job);

// Norms alone, in 16 bits: their weights stay as they are made, in fp32. A matrix product refuses
// factors of two types, so whoever has one casts the module; a norm takes both.
bool is_norm_only_benchmark(const Job& job);

// Says so in the answer where it was not asked for.
void note_benchmark(const Job& job, std::vector<std::string>& assumptions);

}  // namespace memfathom
