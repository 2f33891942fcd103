#include "kernels/framework/tensor/iteration_replay.h"

#include <algorithm>
#include <new>

#include "kernels/framework/tensor/session.h"

namespace memfathom {

void IterationReplay::begin() {
  first_birth_ = session_.births();
  events_.clear();
  phases_.clear();
  made_.clear();
  replaced_.clear();
  moved_.clear();
  successors_.clear();
  is_spoiled_ = is_ready_ = false;
  session_.recorder = this;
}

void IterationReplay::end() {
  session_.recorder = nullptr;
  is_ready_ = !is_spoiled_ && match();
}

// Destructors call it: without memory for the event the iteration is not played.
void IterationReplay::write(const Event& event) noexcept {
  try {
    events_.push_back(event);
  } catch (const std::bad_alloc&) {
    spoil();
  }
}

void IterationReplay::taken(Storage& storage) {
  write({Kind::kTake, storage.component(), storage.module(), session_.stream,
         static_cast<std::uint32_t>(made_.size()), storage.requested()});
  made_.push_back(&storage);
}

void IterationReplay::freed(const Storage& storage) noexcept {
  if (is_spoiled_) return;
  if (storage.birth() >= first_birth_) {
    const auto slot = static_cast<std::uint32_t>(storage.birth() - first_birth_);
    made_[slot] = nullptr;
    write({Kind::kFree, {}, 0, 0, slot, {}});
    return;
  }
  try {
    replaced_.push_back({storage.birth(), storage.requested(), storage.module(), events_.size()});
    write({Kind::kFree, {}, 0, 0, 0, {}});  // its slot follows from match()
  } catch (const std::bad_alloc&) {
    spoil();
  }
}

void IterationReplay::moved(const Storage& storage, Component to) noexcept {
  if (is_spoiled_) return;
  if (storage.birth() >= first_birth_) {
    write({Kind::kMove, to, 0, 0, static_cast<std::uint32_t>(storage.birth() - first_birth_), {}});
    return;
  }
  try {
    moved_.push_back({storage.birth(), events_.size()});
    write({Kind::kMove, to, 0, 0, 0, {}});
  } catch (const std::bad_alloc&) {
    spoil();
  }
}

void IterationReplay::phase(const std::string& name) {
  write({Kind::kPhase, {}, 0, 0, static_cast<std::uint32_t>(phases_.size()), {}});
  phases_.push_back(name);
}

// What was made first was made first in the iteration before, too: both are put in order of birth.
bool IterationReplay::match() {
  for (std::size_t slot = 0; slot < made_.size(); ++slot) {
    if (made_[slot] != nullptr) successors_.push_back(static_cast<std::uint32_t>(slot));
  }
  if (successors_.size() != replaced_.size()) return false;
  std::sort(replaced_.begin(), replaced_.end(),
            [](const Replaced& a, const Replaced& b) { return a.birth < b.birth; });
  for (std::size_t i = 0; i < replaced_.size(); ++i) {
    const Storage& successor = *made_[successors_[i]];
    if (successor.requested() != replaced_[i].requested ||
        successor.module() != replaced_[i].module)
      return false;
    events_[replaced_[i].event].slot = static_cast<std::uint32_t>(made_.size() + i);
  }
  // What was moved must be among them: anything else stays as it is after the first time.
  return std::all_of(moved_.begin(), moved_.end(), [this](const Moved& moved) {
    const auto at = std::lower_bound(
        replaced_.begin(), replaced_.end(), moved.birth,
        [](const Replaced& replaced, std::uint64_t birth) { return replaced.birth < birth; });
    if (at == replaced_.end() || at->birth != moved.birth) return false;
    events_[moved.event].slot =
        static_cast<std::uint32_t>(made_.size() + static_cast<std::size_t>(at - replaced_.begin()));
    return true;
  });
}

void IterationReplay::run(const Event& event, int iteration, std::vector<Slot>& slots) {
  Ledger& ledger = session_.ledger();
  if (event.kind == Kind::kPhase) return ledger.begin_phase(phases_[event.slot], iteration);
  Slot& slot = slots[event.slot];
  switch (event.kind) {
    case Kind::kTake: {
      const Scoped<int> stream(session_.stream, event.stream);
      slot = {session_.take(event.requested), event.component, event.module, true};
      ledger.add(slot.component, slot.module, slot.allocation.bytes.count());
      break;
    }
    case Kind::kFree:
      ledger.remove(slot.component, slot.module, slot.allocation.bytes.count());
      session_.release(slot.allocation);
      slot.is_live = false;
      break;
    case Kind::kMove:
      ledger.move(slot.component, event.component, slot.module, slot.allocation.bytes.count());
      slot.component = event.component;
      break;
    case Kind::kPhase: break;
  }
}

void IterationReplay::play(int iteration) {
  std::vector<Slot> slots(made_.size());
  slots.reserve(made_.size() + successors_.size());
  for (const std::uint32_t successor : successors_) {
    const Storage& storage = *made_[successor];
    slots.push_back({storage.allocation(), storage.accounted_component(), storage.module(), true});
  }
  try {
    for (const Event& event : events_) run(event, iteration, slots);
  } catch (...) {
    // The run ends here: what the storages still hold is theirs to free.
    for (std::size_t i = 0; i < successors_.size(); ++i) {
      if (!slots[made_.size() + i].is_live) made_[successors_[i]]->forget();
    }
    throw;
  }
  rebind(slots);
}

void IterationReplay::rebind(const std::vector<Slot>& slots) {
  for (const std::uint32_t successor : successors_)
    made_[successor]->rebind(slots[successor].allocation);
}

}  // namespace memfathom
