// IterationReplay: what one iteration allocates and frees, written down to be played again.
//
// Iterations alike make the same requests in the same order; only where the allocator places them
// differs. Once one of them is written down, the next needs no layers and no tape: its requests go
// to the allocator and the ledger as they would have gone. What the next iteration finds of the
// last one (gradients, the loss, the batch) and replaces is matched with what the last one left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

class IterationReplay {
 public:
  explicit IterationReplay(Session& session) : session_(session) {}

  // Writes down what the session does until end().
  void begin();
  void end();
  // Whether the next iteration is known: each storage of an earlier iteration that this one freed
  // has a successor of the same size.
  bool is_ready() const { return is_ready_; }
  // Something else has run since.
  void outdate() { is_ready_ = false; }
  // The iteration again, under its number.
  void play(int iteration);

  // Called by the session and its storages while an iteration is written down.
  void taken(Storage& storage);
  void freed(const Storage& storage) noexcept;
  void moved(const Storage& storage, Component to) noexcept;
  void phase(const std::string& name);
  // Something that is not written down.
  void spoil() { is_spoiled_ = true; }

 private:
  enum class Kind : std::uint8_t { kTake, kFree, kMove, kPhase };
  struct Event {
    Kind kind;
    Component component;  // kTake: at first; kMove: from now on
    ModuleIndex module;
    int stream;
    std::uint32_t slot;  // kPhase: which name
    Bytes requested;
  };
  // A storage of an earlier iteration that this one freed.
  struct Replaced {
    std::uint64_t birth;
    Bytes requested;
    ModuleIndex module;
    std::size_t event;
  };
  // A storage of an earlier iteration that came to count for something else.
  struct Moved {
    std::uint64_t birth;
    std::size_t event;
  };
  struct Slot {
    Allocation allocation;
    Component component = Component::kTemporaries;
    ModuleIndex module = 0;
    bool is_live = false;
  };

  void write(const Event& event) noexcept;
  bool match();
  void run(const Event& event, int iteration, std::vector<Slot>& slots);
  void rebind(const std::vector<Slot>& slots);

  Session& session_;
  std::uint64_t first_birth_ = 0;
  std::vector<Event> events_;
  std::vector<std::string> phases_;
  std::vector<Storage*> made_;  // by slot; null once freed
  std::vector<Replaced> replaced_;
  std::vector<std::uint32_t> successors_;  // slots of what is left at the end, by birth
  std::vector<Moved> moved_;
  bool is_spoiled_ = false;
  bool is_ready_ = false;
};

}  // namespace memfathom
