// SegmentRecording: what a part of a run allocates, frees and saves, written down in order.
//
// One at a time is under way on a thread; storages of its session report to it. SegmentReplay plays
// what it holds for a segment that is alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/component.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

class SegmentRecording {
 public:
  enum class Action : std::uint8_t { kTake, kFree, kMove, kSave, kUnsave };
  struct Event {
    Action action;
    Component component;  // kTake: of the new storage; kMove: from now on
    ModuleIndex module;
    int stream;
    Bytes requested;
    std::uint64_t birth;  // of the storage: earlier than first_birth() if it was there before
    Storage* storage;     // may be gone since
  };

  // Records until end().
  explicit SegmentRecording(Session& session);
  ~SegmentRecording() { end(); }
  SegmentRecording(const SegmentRecording&) = delete;
  SegmentRecording& operator=(const SegmentRecording&) = delete;
  void end();

  // What happened cannot be played: memory that came and went without its storage.
  bool is_spoiled() const { return is_spoiled_; }
  const std::vector<Event>& events() const { return events_; }
  std::uint64_t first_birth() const { return first_birth_; }
  // Storages made while it was under way.
  std::uint64_t births() const { return births_; }
  bool made(std::uint64_t birth) const {
    return birth >= first_birth_ && birth - first_birth_ < births_;
  }

  // The one that `session` reports to, if any.
  static SegmentRecording* of(const Session& session) {
    return current != nullptr && &current->session_ == &session ? current : nullptr;
  }
  void taken(Storage& storage);
  void freed(Storage& storage) noexcept { note(Action::kFree, storage, {}); }
  void moved(Storage& storage, Component to) noexcept { note(Action::kMove, storage, to); }
  void saved(Storage& storage) noexcept;
  void unsaved(Storage& storage) noexcept;
  void spoil() { is_spoiled_ = true; }

 private:
  void note(Action action, Storage& storage, Component component) noexcept;
  // Of what was there before, only temporaries change what they count for when they are saved.
  bool counts(const Storage& storage) const {
    return storage.birth() >= first_birth_ || storage.component() == Component::kTemporaries;
  }

  [[gnu::tls_model("initial-exec")]] static constinit thread_local SegmentRecording* current;

  Session& session_;
  std::uint64_t first_birth_;
  std::uint64_t births_ = 0;
  std::vector<Event> events_;
  bool is_spoiled_ = false;
};

}  // namespace memfathom
