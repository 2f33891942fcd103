// FreeList: the free blocks of one pool and stream, ordered by size and then address, for exact
// best fit.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/memory/allocator/huge_pages.h"

namespace memfathom {

// Sizes are divided into bins, exact up to 32 KiB and 64 per power of two beyond; a bitmap finds
// the next non-empty bin, and each bin is a small B+-tree of packed keys. A training step leaves
// one or two blocks per bin, so most operations touch one node; with a million blocks they stay
// logarithmic.
class FreeList {
 public:
  // Sizes and addresses are multiples of 512 below 2^57, so that size, address and block fit in one
  // 128-bit key.
  static constexpr int kUnitBits = 9;
  static constexpr std::uint64_t kLimit = std::uint64_t{1} << 57;

  __extension__ using Key = unsigned __int128;
  static constexpr Key key(std::uint64_t size, std::uint64_t address, std::uint32_t block) {
    return (Key{size >> kUnitBits} << 80) | (Key{address >> kUnitBits} << 32) | block;
  }
  static constexpr std::uint32_t block_of(Key key) { return static_cast<std::uint32_t>(key); }

  // A position in the order; valid until the next insertion or removal.
  struct Position {
    std::uint32_t leaf = 0;
    std::uint32_t index = 0;
    std::uint32_t bin = 0;
    bool operator==(const Position&) const = default;
  };

  bool empty() const { return count_ == 0; }
  std::uint64_t size() const { return count_; }

  void insert(Key key);
  void erase(Key key);  // the key must be present
  void erase_at(Position position);

  // The first key not below `key`; end() if there is none.
  Position lower_bound(Key key) const;
  Position begin() const { return first_from(0); }
  Position end() const { return {kNone, 0, 0}; }
  Position next(Position position) const;
  // The key before `position`; end() before the first one.
  Position previous(Position position) const;
  Key at(Position position) const { return leaves_[position.leaf].keys[position.index]; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kCapacity = 16;
  static constexpr std::uint32_t kMinimum = kCapacity / 4;
  static constexpr int kMaxHeight = 18;  // 4^18 leaves: more than there are block numbers
  static constexpr std::uint32_t kWords =
      43;  // powers of two from 64 units to 2^48, and one for smaller sizes

  struct Leaf {
    std::uint32_t count = 0;
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
    std::array<Key, kCapacity> keys;
  };
  struct Inner {
    std::uint32_t count = 0;
    std::array<std::uint32_t, kCapacity> children;
    std::array<Key, kCapacity> keys;  // keys[i] is not above any key in child i; keys[0] is unused
  };
  struct Tree {
    std::uint32_t root = kNone;  // a leaf if height is 0; kNone if the bin is empty
    std::uint32_t first_leaf = kNone;
    int height = 0;
  };
  // The inner nodes from the root to a leaf, with the child taken in each.
  struct Path {
    std::array<std::uint32_t, kMaxHeight> nodes;
    std::array<std::uint32_t, kMaxHeight> slots;
  };

  static std::uint32_t bin_of(Key key);
  static std::uint32_t count_below(const Key* keys, std::uint32_t count, Key key);
  static std::uint32_t child_slot(const Inner& inner, Key key);
  std::uint32_t find_leaf(const Tree& tree, Key key) const;
  std::uint32_t find_leaf(const Tree& tree, Key key, Path& path) const;
  bool holds(std::uint32_t bin) const { return (words_[bin / 64] >> (bin % 64) & 1) != 0; }
  Position first_from(std::uint32_t bin) const;
  Position last_before(std::uint32_t bin) const;

  void insert_first(std::uint32_t bin, Key key);
  void remove_last(std::uint32_t bin);
  void split_and_insert(Tree& tree, Key key);
  void add_child(Tree& tree, Path& path, int level, Key separator, std::uint32_t child);
  void remove_child(Tree& tree, Path& path, int level, std::uint32_t slot);
  void refill_leaf(Tree& tree, Key key);
  void refill_inner(Tree& tree, Path& path, int level);
  std::uint32_t new_leaf();
  std::uint32_t new_inner();

  std::array<std::uint64_t, kWords> words_{};  // bit b of word w: bin 64 w + b is not empty
  std::uint64_t summary_ = 0;                  // bit w: word w is not zero
  std::vector<Tree> trees_;                    // by bin, up to the highest bin used
  std::vector<Leaf, HugePages<Leaf>> leaves_;
  std::vector<Inner> inners_;
  std::vector<std::uint32_t> unused_leaves_;
  std::vector<std::uint32_t> unused_inners_;
  std::uint64_t count_ = 0;
};

inline std::uint32_t FreeList::bin_of(Key key) {
  const auto units = static_cast<std::uint64_t>(key >> 80);
  if (units < 64) return static_cast<std::uint32_t>(units);
  const auto log2 = static_cast<std::uint32_t>(63 - std::countl_zero(units));
  return (log2 - 5) * 64 + static_cast<std::uint32_t>(units >> (log2 - 6) & 63);
}

inline std::uint32_t FreeList::count_below(const Key* keys, std::uint32_t count, Key key) {
  // A branchless binary search: the order of sizes in a training step is not predictable.
  const Key* base = keys;
  while (count > 1) {
    const std::uint32_t half = count / 2;
    base += half & (0U - static_cast<std::uint32_t>(base[half - 1] < key));
    count -= half;
  }
  return static_cast<std::uint32_t>(base - keys) +
         static_cast<std::uint32_t>(count == 1 && *base < key);
}

inline std::uint32_t FreeList::child_slot(const Inner& inner, Key key) {
  // The last child whose separator is not above the key.
  return count_below(inner.keys.data() + 1, inner.count - 1, key + 1);
}

inline std::uint32_t FreeList::find_leaf(const Tree& tree, Key key) const {
  std::uint32_t node = tree.root;
  for (int level = 0; level < tree.height; ++level) {
    const Inner& inner = inners_[node];
    node = inner.children[child_slot(inner, key)];
  }
  return node;
}

inline FreeList::Position FreeList::first_from(std::uint32_t bin) const {
  std::uint32_t word = bin / 64;
  if (word >= kWords) return end();
  std::uint64_t bits = words_[word] >> (bin % 64) << (bin % 64);
  if (bits == 0) {
    const std::uint64_t later = word + 1 < 64 ? summary_ >> (word + 1) << (word + 1) : 0;
    if (later == 0) return end();
    word = static_cast<std::uint32_t>(std::countr_zero(later));
    bits = words_[word];
  }
  const std::uint32_t found = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
  return {trees_[found].first_leaf, 0, found};
}

inline FreeList::Position FreeList::lower_bound(Key key) const {
  const std::uint32_t bin = bin_of(key);
  if (holds(bin)) {
    std::uint32_t node = find_leaf(trees_[bin], key);
    const std::uint32_t index = count_below(leaves_[node].keys.data(), leaves_[node].count, key);
    if (index < leaves_[node].count) return {node, index, bin};
    node = leaves_[node].next;
    if (node != kNone) return {node, 0, bin};
  }
  return first_from(bin + 1);
}

inline void FreeList::insert(Key key) {
  const std::uint32_t bin = bin_of(key);
  if (bin >= trees_.size() || trees_[bin].root == kNone) return insert_first(bin, key);
  Leaf& leaf = leaves_[find_leaf(trees_[bin], key)];
  if (leaf.count == kCapacity) return split_and_insert(trees_[bin], key);
  const std::uint32_t index = count_below(leaf.keys.data(), leaf.count, key);
  for (std::uint32_t i = leaf.count; i > index; --i) leaf.keys[i] = leaf.keys[i - 1];
  leaf.keys[index] = key;
  ++leaf.count;
  ++count_;
}

inline void FreeList::erase_at(Position position) {
  Leaf& leaf = leaves_[position.leaf];
  --count_;
  if (leaf.count == 1) return remove_last(position.bin);
  const Key key = leaf.keys[position.index];
  --leaf.count;
  for (std::uint32_t i = position.index; i < leaf.count; ++i) leaf.keys[i] = leaf.keys[i + 1];
  if (leaf.count < kMinimum && trees_[position.bin].height > 0)
    refill_leaf(trees_[position.bin], key);
}

inline void FreeList::erase(Key key) {
  const std::uint32_t bin = bin_of(key);
  const std::uint32_t node = find_leaf(trees_[bin], key);
  erase_at({node, count_below(leaves_[node].keys.data(), leaves_[node].count, key), bin});
}

}  // namespace memfathom
