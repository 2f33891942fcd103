// Who plans behind the double of cuDNN: the real library, where it is installed, or the double's
// own small planner.
#pragma once

namespace memfathom::doubles {

// The own planner is the default: it is quick and always the same. False when the real library was
// wanted but is absent.
bool plan_with_real_cudnn(bool wanted);

}  // namespace memfathom::doubles
