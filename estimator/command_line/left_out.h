// Left out: settings that neither the command nor its script says and that have no default which
// everybody shares. The verdict stays open for them.
#pragma once

namespace memfathom {

struct CommandReading;

// The batch of a script that is nobody's in particular.
void leave_batch_open(CommandReading& reading);

// The text tower of a script that trains CLIP: its model is named as the image tower alone.
void leave_text_tower_open(CommandReading& reading);

}  // namespace memfathom
