#include "kernels/memory/allocator/free_list.h"

#include <algorithm>

namespace memfathom {

FreeList::Position FreeList::next(Position position) const {
  const Leaf& leaf = leaves_[position.leaf];
  if (position.index + 1 < leaf.count) return {position.leaf, position.index + 1, position.bin};
  if (leaf.next != kNone) return {leaf.next, 0, position.bin};
  return first_from(position.bin + 1);
}

FreeList::Position FreeList::previous(Position position) const {
  if (position.leaf == kNone) return last_before(kWords * 64);
  if (position.index > 0) return {position.leaf, position.index - 1, position.bin};
  const std::uint32_t before = leaves_[position.leaf].previous;
  if (before != kNone) return {before, leaves_[before].count - 1, position.bin};
  return last_before(position.bin);
}

// The last key of the bins below `bin`.
FreeList::Position FreeList::last_before(std::uint32_t bin) const {
  for (std::uint32_t word = (bin + 63) / 64; word-- > 0;) {
    const std::uint32_t beyond = bin - word * 64;  // the number of bits of this word below `bin`
    const std::uint64_t bits =
        beyond >= 64 ? words_[word] : words_[word] & ((std::uint64_t{1} << beyond) - 1);
    if (bits == 0) continue;
    const std::uint32_t found = word * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(bits));
    std::uint32_t node = trees_[found].root;
    for (int level = 0; level < trees_[found].height; ++level) {
      node = inners_[node].children[inners_[node].count - 1];
    }
    return {node, leaves_[node].count - 1, found};
  }
  return end();
}

void FreeList::insert_first(std::uint32_t bin, Key key) {
  if (bin >= trees_.size()) trees_.resize((bin / 64 + std::size_t{1}) * 64);
  const std::uint32_t node = new_leaf();
  Leaf& leaf = leaves_[node];
  leaf.count = 1;
  leaf.next = leaf.previous = kNone;
  leaf.keys[0] = key;
  trees_[bin] = {node, node, 0};
  words_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  summary_ |= std::uint64_t{1} << (bin / 64);
  ++count_;
}

// Removes the only key of a bin's only leaf.
void FreeList::remove_last(std::uint32_t bin) {
  unused_leaves_.push_back(trees_[bin].root);
  trees_[bin] = {};
  words_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  if (words_[bin / 64] == 0) summary_ &= ~(std::uint64_t{1} << (bin / 64));
}

std::uint32_t FreeList::find_leaf(const Tree& tree, Key key, Path& path) const {
  std::uint32_t node = tree.root;
  for (int level = 0; level < tree.height; ++level) {
    const auto at = static_cast<std::size_t>(level);
    const Inner& inner = inners_[node];
    path.nodes[at] = node;
    path.slots[at] = child_slot(inner, key);
    node = inner.children[path.slots[at]];
  }
  return node;
}

void FreeList::split_and_insert(Tree& tree, Key key) {
  Path path;
  const std::uint32_t left = find_leaf(tree, key, path);
  const std::uint32_t right = new_leaf();  // may move the leaves: take references after this line
  Leaf& a = leaves_[left];
  Leaf& b = leaves_[right];
  // Keys in ascending order leave full leaves behind instead of half-empty ones.
  const bool appends = a.next == kNone && a.keys[kCapacity - 1] < key;
  const std::uint32_t kept = appends ? kCapacity - kMinimum : kCapacity / 2;
  std::copy(a.keys.begin() + kept, a.keys.end(), b.keys.begin());
  a.count = kept;
  b.count = kCapacity - kept;
  b.next = a.next;
  b.previous = left;
  a.next = right;
  if (b.next != kNone) leaves_[b.next].previous = right;
  const Key separator = b.keys[0];
  add_child(tree, path, tree.height - 1, separator, right);
  insert(key);
}

// Inserts `child` after the child that `path` took at `level`, splitting full nodes up to the root.
void FreeList::add_child(Tree& tree, Path& path, int level, Key separator, std::uint32_t child) {
  if (level < 0) {
    const std::uint32_t top = new_inner();
    Inner& inner = inners_[top];
    inner.children[0] = tree.root;
    inner.children[1] = child;
    inner.keys[1] = separator;
    inner.count = 2;
    tree.root = top;
    ++tree.height;
    return;
  }
  const auto at = static_cast<std::size_t>(level);
  std::uint32_t node = path.nodes[at];
  std::uint32_t slot = path.slots[at] + 1;
  if (inners_[node].count == kCapacity) {
    const std::uint32_t other = new_inner();
    Inner& a = inners_[node];
    Inner& b = inners_[other];
    constexpr std::uint32_t kHalf = kCapacity / 2;
    std::copy(a.keys.begin() + kHalf, a.keys.end(), b.keys.begin());
    std::copy(a.children.begin() + kHalf, a.children.end(), b.children.begin());
    a.count = kHalf;
    b.count = kHalf;
    add_child(tree, path, level - 1, b.keys[0], other);
    if (slot > kHalf) {
      node = other;
      slot -= kHalf;
    }
  }
  Inner& inner = inners_[node];
  std::copy_backward(inner.keys.begin() + slot, inner.keys.begin() + inner.count,
                     inner.keys.begin() + inner.count + 1);
  std::copy_backward(inner.children.begin() + slot, inner.children.begin() + inner.count,
                     inner.children.begin() + inner.count + 1);
  inner.keys[slot] = separator;
  inner.children[slot] = child;
  ++inner.count;
}

// The leaf that held `key` is too small: merges it with a neighbour or takes some of its keys.
void FreeList::refill_leaf(Tree& tree, Key key) {
  Path path;
  find_leaf(tree, key, path);
  const auto at = static_cast<std::size_t>(tree.height - 1);
  Inner& parent = inners_[path.nodes[at]];
  const std::uint32_t slot =
      path.slots[at] + 1 < parent.count ? path.slots[at] : path.slots[at] - 1;
  const std::uint32_t right = parent.children[slot + 1];
  Leaf& a = leaves_[parent.children[slot]];
  Leaf& b = leaves_[right];
  const std::uint32_t total = a.count + b.count;
  if (total <= kCapacity * 3 / 4) {
    std::copy(b.keys.begin(), b.keys.begin() + b.count, a.keys.begin() + a.count);
    a.count = total;
    a.next = b.next;
    if (b.next != kNone) leaves_[b.next].previous = parent.children[slot];
    unused_leaves_.push_back(right);
    remove_child(tree, path, tree.height - 1, slot + 1);
    return;
  }
  const std::uint32_t share = total / 2;
  if (a.count < share) {
    const std::uint32_t moved = share - a.count;
    std::copy(b.keys.begin(), b.keys.begin() + moved, a.keys.begin() + a.count);
    std::copy(b.keys.begin() + moved, b.keys.begin() + b.count, b.keys.begin());
  } else {
    const std::uint32_t moved = a.count - share;
    std::copy_backward(b.keys.begin(), b.keys.begin() + b.count, b.keys.begin() + b.count + moved);
    std::copy(a.keys.begin() + share, a.keys.begin() + a.count, b.keys.begin());
  }
  a.count = share;
  b.count = total - share;
  parent.keys[slot + 1] = b.keys[0];
}

void FreeList::remove_child(Tree& tree, Path& path, int level, std::uint32_t slot) {
  const auto at = static_cast<std::size_t>(level);
  Inner& inner = inners_[path.nodes[at]];
  std::copy(inner.keys.begin() + slot + 1, inner.keys.begin() + inner.count,
            inner.keys.begin() + slot);
  std::copy(inner.children.begin() + slot + 1, inner.children.begin() + inner.count,
            inner.children.begin() + slot);
  --inner.count;
  if (level > 0) {
    if (inner.count < kMinimum) refill_inner(tree, path, level);
  } else if (inner.count == 1) {
    unused_inners_.push_back(tree.root);
    tree.root = inner.children[0];
    --tree.height;
  }
}

void FreeList::refill_inner(Tree& tree, Path& path, int level) {
  const auto at = static_cast<std::size_t>(level);
  Inner& parent = inners_[path.nodes[at - 1]];
  const std::uint32_t taken = path.slots[at - 1];
  const std::uint32_t slot = taken + 1 < parent.count ? taken : taken - 1;
  const std::uint32_t right = parent.children[slot + 1];
  Inner& a = inners_[parent.children[slot]];
  Inner& b = inners_[right];
  b.keys[0] = parent.keys[slot + 1];  // the separator of the two becomes one of the merged node
  const std::uint32_t total = a.count + b.count;
  if (total <= kCapacity * 3 / 4) {
    std::copy(b.keys.begin(), b.keys.begin() + b.count, a.keys.begin() + a.count);
    std::copy(b.children.begin(), b.children.begin() + b.count, a.children.begin() + a.count);
    a.count = total;
    b.count = 0;
    unused_inners_.push_back(right);
    remove_child(tree, path, level - 1, slot + 1);
    return;
  }
  const std::uint32_t share = total / 2;
  if (a.count < share) {
    const std::uint32_t moved = share - a.count;
    std::copy(b.keys.begin(), b.keys.begin() + moved, a.keys.begin() + a.count);
    std::copy(b.children.begin(), b.children.begin() + moved, a.children.begin() + a.count);
    std::copy(b.keys.begin() + moved, b.keys.begin() + b.count, b.keys.begin());
    std::copy(b.children.begin() + moved, b.children.begin() + b.count, b.children.begin());
  } else {
    const std::uint32_t moved = a.count - share;
    std::copy_backward(b.keys.begin(), b.keys.begin() + b.count, b.keys.begin() + b.count + moved);
    std::copy_backward(b.children.begin(), b.children.begin() + b.count,
                       b.children.begin() + b.count + moved);
    std::copy(a.keys.begin() + share, a.keys.begin() + a.count, b.keys.begin());
    std::copy(a.children.begin() + share, a.children.begin() + a.count, b.children.begin());
  }
  a.count = share;
  b.count = total - share;
  parent.keys[slot + 1] = b.keys[0];
}

std::uint32_t FreeList::new_leaf() {
  if (unused_leaves_.empty()) {
    leaves_.emplace_back();
    return static_cast<std::uint32_t>(leaves_.size() - 1);
  }
  const std::uint32_t node = unused_leaves_.back();
  unused_leaves_.pop_back();
  return node;
}

std::uint32_t FreeList::new_inner() {
  if (unused_inners_.empty()) {
    inners_.emplace_back();
    return static_cast<std::uint32_t>(inners_.size() - 1);
  }
  const std::uint32_t node = unused_inners_.back();
  unused_inners_.pop_back();
  inners_[node] = {};
  return node;
}

}  // namespace memfathom
