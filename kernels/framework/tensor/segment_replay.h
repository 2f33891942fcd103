// SegmentReplay: segments of a run that are alike (a model's blocks), of which one runs and the
// others are played from what it allocated, freed and saved.
//
// Why this is exact: on a device that computes nothing, a segment is what it asks of the allocator
// and the ledger, and which storages it leaves to whom. Two segments with equal code, equal
// parameters and equal inputs ask the same in the same order. So the first of them runs and is
// written down. The next ones make and free storages of their own by that list, and leave tensors
// where the first left some: its output, its cache, the casts of its weights. With gradients the
// last of them runs, too: it must have done the same as the first, and what its backward pass does
// is the list for those between, whose backward passes come after it. Nothing is taken for granted:
// what cannot be told from the list is run, and where that is no longer possible SegmentsDiffer is
// thrown, after which the whole run is made again without replays.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/framework/tensor/segment_recording.h"
#include "kernels/framework/tensor/tape_node.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// A segment that was played in the forward pass turned out not to be like the one that was run.
struct SegmentsDiffer {};

// Whether segments may be played on this thread; not by default.
bool replays_segments();
class ReplayScope {
 public:
  explicit ReplayScope(bool allowed);
  ~ReplayScope();
  ReplayScope(const ReplayScope&) = delete;
  ReplayScope& operator=(const ReplayScope&) = delete;

 private:
  bool before_;
};

// What a segment has of its own, in the same order for all that are alike.
struct SegmentParts {
  std::vector<Tensor*> state;                       // replaced by the segment: keys and values
  const std::vector<Tensor>* parameters = nullptr;  // the trainable ones
};

using SegmentFunction = std::function<Tensor(const Tensor&)>;

// A forward pass through segments alike, and its backward pass.
class SegmentReplay : public std::enable_shared_from_this<SegmentReplay> {
 public:
  explicit SegmentReplay(Session& session) : session_(session) {}

  // Runs the first one.
  Tensor record(const Tensor& x, const SegmentParts& parts, const SegmentFunction& run);
  // Whether what the first one did says what a segment with this input and these parts does.
  bool plays(const Tensor& x, const SegmentParts& parts) const;
  Tensor play(const Tensor& x, const SegmentParts& parts);
  // Runs the last one, for its backward pass. Throws SegmentsDiffer.
  Tensor record_last(const Tensor& x, const SegmentParts& parts, const SegmentFunction& run);
  bool has_gradients() const { return forward_ && forward_->output.form.requires_grad; }

 private:
  using Action = SegmentRecording::Action;

  // Whose a storage is.
  enum class Owner : std::uint8_t {
    kNew,       // made by the segment
    kInput,     // x's
    kState,     // was in SegmentParts::state before
    kForward,   // made by the forward pass of the segment whose backward pass this is
    kGradient,  // of the segment's output
    kShared,    // of all segments: masks, tables
  };
  struct Place {
    Owner owner = Owner::kShared;
    std::uint32_t index = 0;    // kNew, kForward: which; kState: of which
    Storage* shared = nullptr;  // kShared
    bool operator==(const Place&) const = default;
  };
  struct Event {
    Action action;
    Component component;
    ModuleIndex module;
    int stream;
    Bytes requested;
    Place place;
    bool operator==(const Event&) const = default;
  };
  struct Form {
    bool is_defined = false, requires_grad = false;
    Shape shape, strides;
    std::int64_t offset = 0;
    DType dtype = DType::kFp32;
    Component component = Component::kTemporaries, accounted = Component::kTemporaries;
    bool operator==(const Form&) const = default;
  };
  // A tensor that a segment leaves.
  struct Left {
    std::size_t index = 0;  // of the state, or of the parameter
    Form form;
    Place place;
    bool is_only_holder = false;  // nothing of the segment holds its storage
    bool operator==(const Left&) const = default;
  };
  struct Forward {
    Form input;
    std::vector<Form> state_before;
    std::vector<Event> events;
    std::size_t count = 0;            // of the storages that it makes
    std::vector<std::uint32_t> kept;  // of these, what its backward pass needs
    bool keeps_input = false;
    Left output;
    std::vector<Left> state, casts;
    bool operator==(const Forward&) const = default;
  };
  struct BackwardPass {
    Left gradient;                   // of the output
    std::vector<bool> has_gradient;  // by parameter, before
    std::vector<Event> events;
    std::size_t count = 0;
    Left input;  // its gradient
    std::vector<Left> gradients;
  };
  // Numbers of the storages that a recording made, without those that the session keeps.
  static constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};
  static constexpr std::uint64_t kNoBirth = ~std::uint64_t{0};
  struct Numbers {
    std::uint64_t first_birth = 0;
    std::vector<std::uint32_t> of_birth;
    std::size_t count = 0;
    std::vector<bool> is_alive;  // by number: at the end
    std::uint32_t number_of(std::uint64_t birth) const {
      const std::uint64_t at = birth - first_birth;
      return birth >= first_birth && at < of_birth.size() ? of_birth[at] : kNoNumber;
    }
  };
  struct Last {
    Numbers numbers;
    std::uint64_t input_birth = 0, gradient_birth = 0;
    const std::vector<Tensor>* parameters = nullptr;
    std::optional<SegmentRecording> recording;
    BackwardPass pass;
  };
  using Storages = std::vector<Ref<Storage>>;
  // Of a segment that was played, for its backward pass.
  struct Played {
    std::shared_ptr<SegmentReplay> replay;
    Storages made;
    Ref<Storage> input;
    const std::vector<Tensor>* parameters;
  };

  static Form form_of(const Tensor& tensor);
  static std::optional<Numbers> numbers_of(const SegmentRecording& recording);
  template <typename PlaceOf>
  static std::optional<std::vector<Event>> events_of(const SegmentRecording& recording,
                                                     const Numbers& numbers, PlaceOf place_of);
  Tensor run_recorded(const Tensor& x, const SegmentParts& parts, const SegmentFunction& run,
                      std::optional<Forward>& forward, Numbers& numbers);
  static Left left_of(const Tensor& tensor, std::size_t index, const Place& place);
  Tensor made_from(const Left& left, const Ref<Storage>& storage);
  template <typename StorageOf>
  void play_events(const std::vector<Event>& events, Storages& made, StorageOf storage_of);
  void begin_backward(Backward& b);
  void end_backward(Backward& b);
  void play_backward(Backward& b, Played& played);

  Session& session_;
  std::optional<Forward> forward_;
  Last last_;
  std::optional<BackwardPass> backward_;
};

}  // namespace memfathom
