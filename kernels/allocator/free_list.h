// FreeList: the free blocks of one pool and stream, ordered by size and then address, for exact
// best fit.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace memfathom {

// A B+-tree of packed 16-byte keys. Training steps keep a few dozen blocks here, which then live in
// one or two cache lines' worth of search; with a million blocks a search touches four nodes where
// a binary tree touches twenty.
class FreeList {
 public:
  // Sizes and addresses are multiples of 512 below 2^57, so that size, address and block fit one
  // 128-bit key.
  static constexpr int kUnitBits = 9;
  static constexpr std::uint64_t kLimit = std::uint64_t{1} << 57;

  __extension__ using Key = unsigned __int128;
  static constexpr Key key(std::uint64_t size, std::uint64_t address, std::uint32_t block) {
    return (Key{size >> kUnitBits} << 80) | (Key{address >> kUnitBits} << 32) | block;
  }
  static constexpr std::uint32_t block_of(Key key) { return static_cast<std::uint32_t>(key); }

  // A place in the order; valid until the next insertion or removal.
  struct Position {
    std::uint32_t leaf = 0;
    std::uint32_t index = 0;
    bool operator==(const Position&) const = default;
  };

  FreeList();

  bool empty() const { return count_ == 0; }
  std::uint64_t size() const { return count_; }

  void insert(Key key);
  void erase(Key key);  // a key that is present
  void erase_at(Position position);

  // The first key that is not below `key`; end() if there is none.
  Position lower_bound(Key key) const;
  Position begin() const { return settle({first_leaf_, 0}); }
  Position end() const { return {kNone, 0}; }
  Position next(Position position) const { return settle({position.leaf, position.index + 1}); }
  // The key before `position`; end() before the first one.
  Position previous(Position position) const;
  Key at(Position position) const { return leaves_[position.leaf].keys[position.index]; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kCapacity = 32;
  static constexpr std::uint32_t kMinimum = kCapacity / 4;
  static constexpr int kMaxHeight = 14;  // 8^14 leaves: more than there can be block numbers

  struct Leaf {
    std::array<Key, kCapacity> keys;
    std::uint32_t count = 0;
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
  };
  struct Inner {
    std::array<Key, kCapacity>
        keys;  // keys[i]: not above anything in child i; keys[0] is not looked at
    std::array<std::uint32_t, kCapacity> children;
    std::uint32_t count = 0;
  };
  // The inner nodes from the root to a leaf, with the child taken in each.
  struct Path {
    std::array<std::uint32_t, kMaxHeight> nodes;
    std::array<std::uint32_t, kMaxHeight> slots;
  };

  static std::uint32_t count_below(const Key* keys, std::uint32_t count, Key key);
  std::uint32_t child_slot(const Inner& inner, Key key) const;
  std::uint32_t find_leaf(Key key) const;
  std::uint32_t find_leaf(Key key, Path& path) const;
  Position settle(Position position) const {
    if (position.leaf != kNone && position.index >= leaves_[position.leaf].count) {
      return {leaves_[position.leaf].next, 0};
    }
    return position;
  }

  void split_and_insert(Key key);
  void add_child(Path& path, int level, Key separator, std::uint32_t child);
  void remove_child(Path& path, int level, std::uint32_t slot);
  void refill_leaf(Key key);
  void refill_inner(Path& path, int level);
  std::uint32_t new_leaf();
  std::uint32_t new_inner();

  std::vector<Leaf> leaves_;
  std::vector<Inner> inners_;
  std::vector<std::uint32_t> unused_leaves_;
  std::vector<std::uint32_t> unused_inners_;
  std::uint32_t root_ = 0;  // a leaf when height_ is 0
  std::uint32_t first_leaf_ = 0;
  int height_ = 0;
  std::uint64_t count_ = 0;
};

inline std::uint32_t FreeList::count_below(const Key* keys, std::uint32_t count, Key key) {
  // A binary search without branches to mispredict: the order of sizes in a training step is no
  // pattern.
  const Key* base = keys;
  while (count > 1) {
    const std::uint32_t half = count / 2;
    base += base[half - 1] < key ? half : 0;
    count -= half;
  }
  return static_cast<std::uint32_t>(base - keys) + (count == 1 && *base < key ? 1 : 0);
}

inline std::uint32_t FreeList::child_slot(const Inner& inner, Key key) const {
  // The last child whose separator is not above the key.
  return count_below(inner.keys.data() + 1, inner.count - 1, key + 1);
}

inline std::uint32_t FreeList::find_leaf(Key key) const {
  std::uint32_t node = root_;
  for (int level = 0; level < height_; ++level) {
    const Inner& inner = inners_[node];
    node = inner.children[child_slot(inner, key)];
  }
  return node;
}

inline FreeList::Position FreeList::lower_bound(Key key) const {
  const std::uint32_t leaf = find_leaf(key);
  return settle({leaf, count_below(leaves_[leaf].keys.data(), leaves_[leaf].count, key)});
}

inline void FreeList::insert(Key key) {
  const std::uint32_t node = find_leaf(key);
  Leaf& leaf = leaves_[node];
  if (leaf.count == kCapacity) return split_and_insert(key);
  const std::uint32_t index = count_below(leaf.keys.data(), leaf.count, key);
  for (std::uint32_t i = leaf.count; i > index; --i) leaf.keys[i] = leaf.keys[i - 1];
  leaf.keys[index] = key;
  ++leaf.count;
  ++count_;
}

inline void FreeList::erase_at(Position position) {
  Leaf& leaf = leaves_[position.leaf];
  const Key key = leaf.keys[position.index];
  --leaf.count;
  --count_;
  for (std::uint32_t i = position.index; i < leaf.count; ++i) leaf.keys[i] = leaf.keys[i + 1];
  if (leaf.count < kMinimum && height_ > 0) refill_leaf(key);
}

inline void FreeList::erase(Key key) { erase_at(lower_bound(key)); }

}  // namespace memfathom
