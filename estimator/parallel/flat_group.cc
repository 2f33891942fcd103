#include "estimator/parallel/flat_group.h"

#include <algorithm>

namespace memfathom {
namespace {

bool belongs(const FlatGroup& group, const Tensor& parameter) {
  const Tensor& first = group.leaves.front();
  return first.dtype() == parameter.dtype() && group.trainable == parameter.requires_grad() &&
         first.impl()->storage->module() == parameter.impl()->storage->module() &&
         first.impl()->storage->component() == parameter.impl()->storage->component();
}

}  // namespace

std::vector<FlatGroup> flatten(Session& session, const std::vector<Tensor>& parameters,
                               StorageObserver* storage_observer) {
  std::vector<FlatGroup> groups;
  for (const Tensor& parameter : parameters) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const FlatGroup& g) { return belongs(g, parameter); });
    if (group == groups.end())
      group = groups.insert(groups.end(), FlatGroup{{}, {}, parameter.requires_grad()});
    group->leaves.push_back(parameter);
  }
  for (FlatGroup& group : groups) {
    std::int64_t elements = 0;
    for (const Tensor& leaf : group.leaves) elements += leaf.elements();
    const Storage& first = *group.leaves.front().impl()->storage;
    const ComponentScope component(session, first.component());
    const Scoped<ModuleIndex> module(session.module, first.module());
    group.whole = session.deferred({elements}, group.leaves.front().dtype());
    group.storage().set_storage_observer(storage_observer);
    std::int64_t offset = 0;
    for (const Tensor& leaf : group.leaves) {
      leaf.impl()->storage = group.whole.impl()->storage;
      leaf.impl()->offset = offset;
      offset += leaf.elements();
    }
  }
  return groups;
}

Tensor make_companion_tensor(const FlatGroup& group, Session& session, std::int64_t elements,
                             DType dtype, Component component) {
  const ComponentScope scope(session, component);
  if (&session != &group.storage().session()) return session.empty({elements}, dtype);
  const Scoped<ModuleIndex> module(session.module, group.module());
  return session.empty({elements}, dtype);
}

}  // namespace memfathom
