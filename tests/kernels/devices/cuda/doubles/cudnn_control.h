// Selects the planner of the cuDNN double: the real library, if installed, or a small built-in
// planner.
#pragma once

namespace memfathom::doubles {

// The built-in planner is the default: it is fast and deterministic. Returns false if the real
// library was requested but is missing.
bool plan_with_real_cudnn(bool wanted);

}  // namespace memfathom::doubles
