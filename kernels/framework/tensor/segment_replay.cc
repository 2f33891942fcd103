#include "kernels/framework/tensor/segment_replay.h"

#include <algorithm>
#include <utility>

#include "kernels/framework/tensor/engine.h"
#include "kernels/framework/tensor/recording.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

thread_local bool is_allowed = false;

// A view of `x` whose place in the graph is known: its gradient passes `function`.
template <typename F>
Tensor marked(const char* name, const Tensor& x, F function) {
  Recording tape(x.session(), name, {&x});
  Tensor view = x.detach();
  tape.finish(view, std::move(function));
  return view;
}

}  // namespace

bool replays_segments() { return is_allowed; }

ReplayScope::ReplayScope(bool allowed) : before_(std::exchange(is_allowed, allowed)) {}
ReplayScope::~ReplayScope() { is_allowed = before_; }

SegmentReplay::Form SegmentReplay::form_of(const Tensor& tensor) {
  if (!tensor) return {};
  const Storage& storage = *tensor.impl()->storage;
  return {true,
          tensor.requires_grad(),
          tensor.shape(),
          tensor.strides(),
          tensor.impl()->offset,
          tensor.dtype(),
          storage.component(),
          storage.accounted_component()};
}

// Absent if the recording cannot be played.
std::optional<SegmentReplay::Numbers> SegmentReplay::numbers_of(const SegmentRecording& recording) {
  if (recording.is_spoiled()) return std::nullopt;
  Numbers numbers{recording.first_birth(), {}, 0, {}};
  std::vector<bool> is_alive(recording.births());
  std::vector<Component> components(recording.births());
  const auto raw = [&](std::uint64_t birth) { return birth - numbers.first_birth; };
  for (const SegmentRecording::Event& event : recording.events()) {
    if (!recording.made(event.birth)) continue;
    if (event.action == Action::kTake) {
      is_alive[raw(event.birth)] = true;
      components[raw(event.birth)] = event.component;
    } else if (event.action == Action::kFree) {
      is_alive[raw(event.birth)] = false;
    }
  }
  numbers.of_birth.resize(recording.births());
  for (std::size_t i = 0; i < is_alive.size(); ++i) {
    // A gemm's workspace that stays is the session's: only the first segment of all takes it.
    const bool is_kept = is_alive[i] && components[i] == Component::kWorkspaceCublas;
    numbers.of_birth[i] = is_kept ? kNoNumber : static_cast<std::uint32_t>(numbers.count++);
    if (!is_kept) numbers.is_alive.push_back(is_alive[i]);
  }
  return numbers;
}

template <typename PlaceOf>
std::optional<std::vector<SegmentReplay::Event>> SegmentReplay::events_of(
    const SegmentRecording& recording, const Numbers& numbers, PlaceOf place_of) {
  std::vector<Event> events;
  events.reserve(recording.events().size());
  for (const SegmentRecording::Event& event : recording.events()) {
    Place place;
    if (recording.made(event.birth)) {
      place = {Owner::kNew, numbers.number_of(event.birth), nullptr};
      if (place.index == kNoNumber) {
        if (event.action == Action::kTake) continue;
        return std::nullopt;
      }
    } else {
      place = place_of(event.birth, event.storage);
      const bool is_saved = event.action == Action::kSave || event.action == Action::kUnsave;
      if (place.owner == Owner::kShared && !is_saved) return std::nullopt;
    }
    events.push_back(
        {event.action, event.component, event.module, event.stream, event.requested, place});
  }
  return events;
}

SegmentReplay::Left SegmentReplay::left_of(const Tensor& tensor, std::size_t index,
                                           const Place& place) {
  const bool is_only_holder =
      tensor && tensor.ref()->use_count() == 1 && tensor.impl()->storage->use_count() == 1;
  return {index, form_of(tensor), place, is_only_holder};
}

Tensor SegmentReplay::run_recorded(const Tensor& x, const SegmentParts& parts,
                                   const SegmentFunction& run, std::optional<Forward>& forward,
                                   Numbers& numbers) {
  Forward found;
  found.input = form_of(x);
  const std::uint64_t input_birth = x.impl()->storage->birth();
  std::vector<std::uint64_t> births_before;
  bool is_own = true;  // nothing else holds what the segment is to replace
  for (const Tensor* state : parts.state) {
    const Left before = left_of(*state, 0, {});
    is_own = is_own && (before.is_only_holder || !before.form.is_defined);
    found.state_before.push_back(before.form);
    births_before.push_back(*state ? state->impl()->storage->birth() : kNoBirth);
  }
  const std::size_t casts_before = session_.autocast_cache.size();
  const std::uint32_t holders = x.impl()->storage->use_count();
  SegmentRecording recording(session_);
  Tensor output = run(x);
  recording.end();

  std::optional<Numbers> made = numbers_of(recording);
  if (!made || !output || !is_own) return output;
  const auto place_of_older = [&](std::uint64_t birth, Storage* storage) {
    if (birth == input_birth) return Place{Owner::kInput, 0, nullptr};
    const auto at = std::find(births_before.begin(), births_before.end(), birth);
    if (at == births_before.end()) return Place{Owner::kShared, 0, storage};
    return Place{Owner::kState, static_cast<std::uint32_t>(at - births_before.begin()), nullptr};
  };
  const auto place_of = [&](const Tensor& tensor) {
    if (!tensor) return Place{};
    Storage* storage = tensor.impl()->storage.get();
    if (!recording.made(storage->birth())) return place_of_older(storage->birth(), storage);
    return Place{Owner::kNew, made->number_of(storage->birth()), nullptr};
  };
  std::optional<std::vector<Event>> events = events_of(recording, *made, place_of_older);
  if (!events) return output;
  found.events = std::move(*events);
  found.count = made->count;
  found.keeps_input = x.impl()->storage->use_count() > holders;
  found.output = left_of(output, 0, place_of(output));
  for (std::size_t i = 0; i < parts.state.size(); ++i)
    found.state.push_back(left_of(*parts.state[i], i, place_of(*parts.state[i])));
  for (std::size_t i = 0; i < parts.parameters->size(); ++i) {
    const auto cast = session_.autocast_cache.find((*parts.parameters)[i].impl());
    if (cast == session_.autocast_cache.end()) continue;
    const Tensor& made_cast = cast->second.second;
    found.casts.push_back(left_of(made_cast, i, place_of(made_cast)));
  }
  if (session_.autocast_cache.size() != casts_before + found.casts.size()) return output;

  // Whoever holds what is still there must be known: a tensor that is left, or the graph.
  std::vector<bool> is_left(found.count), is_elsewhere(found.count);
  const auto note = [&](const Left& left) {
    if (!left.form.is_defined) return true;
    if (left.place.owner == Owner::kState) return true;
    if (left.place.owner != Owner::kNew) return false;
    is_left[left.place.index] = true;
    is_elsewhere[left.place.index] = left.is_only_holder;
    return true;
  };
  if (found.output.place.owner != Owner::kNew || !note(found.output)) return output;
  if (!std::all_of(found.state.begin(), found.state.end(), note)) return output;
  if (!std::all_of(found.casts.begin(), found.casts.end(), note)) return output;
  const bool has_graph = found.output.form.requires_grad;
  if (has_graph && !found.input.requires_grad) return output;
  if (!has_graph && found.keeps_input) return output;
  for (std::uint32_t i = 0; i < found.count; ++i) {
    if (!made->is_alive[i]) continue;
    if (!has_graph && !is_left[i]) return output;
    if (has_graph && !is_elsewhere[i]) found.kept.push_back(i);
  }
  forward = std::move(found);
  numbers = std::move(*made);
  return output;
}

Tensor SegmentReplay::record(const Tensor& x, const SegmentParts& parts,
                             const SegmentFunction& run) {
  Numbers unused;
  return run_recorded(x, parts, run, forward_, unused);
}

Tensor SegmentReplay::record_last(const Tensor& x, const SegmentParts& parts,
                                  const SegmentFunction& run) {
  const std::shared_ptr<SegmentReplay> self = shared_from_this();
  const Tensor input = marked("segment", x, [self](Backward& b) { self->end_backward(b); });
  std::optional<Forward> forward;
  const Tensor output = run_recorded(input, parts, run, forward, last_.numbers);
  if (!forward || !(*forward == *forward_)) throw SegmentsDiffer{};
  last_.input_birth = x.impl()->storage->birth();
  last_.parameters = parts.parameters;
  return marked("segment", output, [self](Backward& b) { self->begin_backward(b); });
}

bool SegmentReplay::plays(const Tensor& x, const SegmentParts& parts) const {
  if (!forward_ || !(form_of(x) == forward_->input)) return false;
  for (std::size_t i = 0; i < parts.state.size(); ++i) {
    const Left before = left_of(*parts.state[i], 0, {});
    if (!(before.form == forward_->state_before[i])) return false;
    if (before.form.is_defined && !before.is_only_holder) return false;
  }
  return true;
}

Tensor SegmentReplay::made_from(const Left& left, const Ref<Storage>& storage) {
  session_.count_tensor();
  Ref<TensorImpl> made = make_ref<TensorImpl>();
  made->storage = storage;
  made->shape = left.form.shape;
  made->strides = left.form.strides;
  made->offset = left.form.offset;
  made->dtype = left.form.dtype;
  return Tensor(std::move(made));
}

template <typename StorageOf>
void SegmentReplay::play_events(const std::vector<Event>& events, Storages& made,
                                StorageOf storage_of) {
  const Scoped<ModuleIndex> module(session_.module, session_.module);
  const Scoped<int> stream(session_.stream, session_.stream);
  for (const Event& event : events) {
    if (event.action == Action::kTake) {
      session_.module = event.module;
      session_.stream = event.stream;
      made[event.place.index] = session_.allocate(event.requested, event.component);
      continue;
    }
    if (event.action == Action::kFree) {
      storage_of(event.place, true);
      continue;
    }
    Storage& storage = *storage_of(event.place, false);
    if (event.action == Action::kMove) {
      storage.set_component(event.component);
    } else if (event.action == Action::kSave) {
      storage.add_saved();
    } else {
      storage.remove_saved();
    }
  }
}

Tensor SegmentReplay::play(const Tensor& x, const SegmentParts& parts) {
  const Forward& forward = *forward_;
  Storages made(forward.count);
  play_events(forward.events, made, [&](const Place& place, bool drops) -> Storage* {
    if (place.owner == Owner::kShared) return place.shared;
    if (place.owner == Owner::kInput) return x.impl()->storage.get();
    if (place.owner == Owner::kState) {
      Tensor& state = *parts.state[place.index];
      if (!drops) return state.impl()->storage.get();
      state.reset();
      return nullptr;
    }
    if (drops) made[place.index].reset();
    return made[place.index].get();
  });
  for (const Left& left : forward.state) {
    Tensor& state = *parts.state[left.index];
    if (!left.form.is_defined) {
      state.reset();
      continue;
    }
    const bool is_older = left.place.owner == Owner::kState;
    const Ref<Storage> storage =
        is_older ? parts.state[left.place.index]->impl()->storage : made[left.place.index];
    state = made_from(left, storage);
  }
  for (const Left& left : forward.casts) {
    const Tensor& parameter = (*parts.parameters)[left.index];
    session_.autocast_cache[parameter.impl()] = {parameter,
                                                 made_from(left, made[left.place.index])};
  }
  Tensor output = made_from(forward.output, made[forward.output.place.index]);
  if (!has_gradients()) return output;
  Played played{shared_from_this(), Storages(forward.count), {}, parts.parameters};
  for (const std::uint32_t kept : forward.kept) played.made[kept] = std::move(made[kept]);
  if (forward.keeps_input) played.input = x.impl()->storage;
  Recording tape(session_, "segment", {&x});
  tape.finish(output, [played = std::move(played)](Backward& b) mutable {
    played.replay->play_backward(b, played);
  });
  return output;
}

void SegmentReplay::begin_backward(Backward& b) {
  Tensor gradient = b.take_gradient();
  last_.pass = {};
  last_.pass.gradient = left_of(gradient, 0, {});
  last_.gradient_birth = gradient.impl()->storage->birth();
  for (const Tensor& parameter : *last_.parameters)
    last_.pass.has_gradient.push_back(parameter.grad().defined());
  b.give(0, std::move(gradient));
  last_.recording.emplace(session_);
}

void SegmentReplay::end_backward(Backward& b) {
  if (!last_.recording) throw SegmentsDiffer{};
  SegmentRecording& recording = *last_.recording;
  recording.end();
  BackwardPass pass = std::move(last_.pass);
  const std::optional<Numbers> numbers = numbers_of(recording);
  if (!numbers) throw SegmentsDiffer{};
  const auto place_of_older = [&](std::uint64_t birth, Storage* storage) {
    if (birth == last_.gradient_birth) return Place{Owner::kGradient, 0, nullptr};
    if (birth == last_.input_birth) return Place{Owner::kInput, 0, nullptr};
    const std::uint32_t number = last_.numbers.number_of(birth);
    if (number != kNoNumber) return Place{Owner::kForward, number, nullptr};
    return Place{Owner::kShared, 0, storage};
  };
  const auto place_of = [&](const Tensor& tensor) {
    Storage* storage = tensor.impl()->storage.get();
    if (!recording.made(storage->birth())) return place_of_older(storage->birth(), storage);
    return Place{Owner::kNew, numbers->number_of(storage->birth()), nullptr};
  };
  std::optional<std::vector<Event>> events = events_of(recording, *numbers, place_of_older);
  if (!events) throw SegmentsDiffer{};
  pass.events = std::move(*events);
  pass.count = numbers->count;

  std::size_t known = 0;
  Tensor gradient = b.take_gradient();
  pass.input = left_of(gradient, 0, place_of(gradient));
  if (pass.input.place.owner == Owner::kNew) ++known;
  for (std::size_t i = 0; i < last_.parameters->size(); ++i) {
    const Tensor& of_parameter = (*last_.parameters)[i].grad();
    if (!of_parameter || !recording.made(of_parameter.impl()->storage->birth())) continue;
    pass.gradients.push_back(left_of(of_parameter, i, place_of(of_parameter)));
    ++known;
  }
  const Owner owner = pass.input.place.owner;
  const auto alive = std::count(numbers->is_alive.begin(), numbers->is_alive.end(), true);
  if (owner == Owner::kShared || owner == Owner::kForward || owner == Owner::kInput ||
      known != static_cast<std::size_t>(alive))
    throw SegmentsDiffer{};
  // What the graph held of the forward pass must be gone now, unless a tensor that is left holds
  // it.
  std::vector<bool> is_gone(last_.numbers.count);
  for (const Event& event : pass.events) {
    if (event.action == Action::kFree && event.place.owner == Owner::kForward)
      is_gone[event.place.index] = true;
  }
  for (const std::vector<Left>* lefts : {&forward_->state, &forward_->casts}) {
    for (const Left& left : *lefts) {
      if (left.place.owner == Owner::kNew) is_gone[left.place.index] = true;
    }
  }
  for (const std::uint32_t kept : forward_->kept) {
    if (!is_gone[kept]) throw SegmentsDiffer{};
  }
  b.give(0, std::move(gradient));
  last_.recording.reset();
  backward_ = std::move(pass);
}

void SegmentReplay::play_backward(Backward& b, Played& played) {
  if (!backward_) throw SegmentsDiffer{};
  const BackwardPass& pass = *backward_;
  Tensor incoming = b.take_gradient();
  if (!(left_of(incoming, 0, {}) == pass.gradient)) throw SegmentsDiffer{};
  for (std::size_t i = 0; i < pass.has_gradient.size(); ++i) {
    if ((*played.parameters)[i].grad().defined() != pass.has_gradient[i]) throw SegmentsDiffer{};
  }
  Ref<Storage> gradient = incoming.impl()->storage;
  incoming.reset();
  Storages made(pass.count);
  play_events(pass.events, made, [&](const Place& place, bool drops) -> Storage* {
    if (place.owner == Owner::kShared) return place.shared;
    Ref<Storage>& storage = place.owner == Owner::kNew       ? made[place.index]
                            : place.owner == Owner::kForward ? played.made[place.index]
                            : place.owner == Owner::kInput   ? played.input
                                                             : gradient;
    if (drops) storage.reset();
    return storage.get();
  });
  for (const Left& left : pass.gradients) {
    Tensor parameter = (*played.parameters)[left.index];
    parameter.set_grad(made_from(left, made[left.place.index]));
  }
  const bool is_new = pass.input.place.owner == Owner::kNew;
  b.give(0, made_from(pass.input, is_new ? made[pass.input.place.index] : gradient));
}

}  // namespace memfathom
