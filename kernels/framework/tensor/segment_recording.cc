#include "kernels/framework/tensor/segment_recording.h"

#include <new>

#include "kernels/framework/tensor/session.h"

namespace memfathom {

constinit thread_local SegmentRecording* SegmentRecording::current = nullptr;

SegmentRecording::SegmentRecording(Session& session)
    : session_(session), first_birth_(session.births()), is_spoiled_(current != nullptr) {
  if (!is_spoiled_) current = this;
}

void SegmentRecording::end() {
  if (current != this) return;
  current = nullptr;
  births_ = session_.births() - first_birth_;
}

// Destructors call it: without memory for the event the segment is not played.
void SegmentRecording::note(Action action, Storage& storage, Component component) noexcept {
  try {
    events_.push_back({action, component, storage.module(), session_.stream, storage.requested(),
                       storage.birth(), &storage});
  } catch (const std::bad_alloc&) {
    spoil();
  }
}

void SegmentRecording::taken(Storage& storage) {
  note(Action::kTake, storage, storage.component());
}

void SegmentRecording::saved(Storage& storage) noexcept {
  if (counts(storage)) note(Action::kSave, storage, {});
}

void SegmentRecording::unsaved(Storage& storage) noexcept {
  if (counts(storage)) note(Action::kUnsave, storage, {});
}

}  // namespace memfathom
