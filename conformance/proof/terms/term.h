// Terms: how a value was computed. A term is an operator with its attributes and the terms of its operands; a leaf (a
// parameter, rows of an input) has no operands. Its identity is a hash of all of this, so equal identities mean equal
// terms down to the leaves, in any run, thread or process.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plumbline::proof {

/// The first 128 bits of a SHA-256.
struct TermId {
  uint64_t high = 0, low = 0;
  auto operator<=>(const TermId&) const = default;
};

/// 32 hexadecimal digits.
std::string to_string(const TermId& id);

struct TermIdHash {
  size_t operator()(const TermId& id) const { return id.low; }
};

struct Term {
  std::string op;          ///< "aten::mm", or a kind of leaf: "parameter", "input"
  std::string attributes;  ///< dtype, sizes and arguments that are no tensors; of a leaf its name
  std::vector<TermId> operands;
};

/// The terms of one or several runs, each once, in about 80 bytes: micro-batches repeat operators and attributes, which
/// are kept once. Thread-safe; threads that add different terms seldom wait for each other.
class Terms {
  struct Named;

 public:
  /// An operator with its attributes.
  class Head {
    friend class Terms;
    explicit Head(const Named& named) : named_(&named) {}
    const Named* named_;
  };

  Head head(std::string_view op, std::string_view attributes);
  Head head_of(const TermId& id) const;
  /// Adds the term unless it is known.
  TermId add(Head head, std::span<const TermId> operands) { return add_numbered(head, operands).id; }
  TermId add(const Term& term) { return add(head(term.op, term.attributes), term.operands); }

  struct Added {
    TermId id;
    size_t number = 0;
  };
  Added add_numbered(Head head, std::span<const TermId> operands);

  /// The term of an id that add() returned.
  Term at(const TermId& id) const;
  size_t size() const;
  /// Each term has a number below numbers_end(). Not every number there is a term's.
  size_t number_of(const TermId& id) const;
  size_t numbers_end() const;
  TermId id_of(size_t number) const;
  /// Whether there is a term of this operator.
  bool any(std::string_view op) const;

 private:
  struct Named {
    std::string op, attributes;
    std::string bytes;  ///< the beginning of the bytes whose hash is a term's id
    uint32_t number;    ///< in heads_
  };
  struct Node {
    TermId id;
    uint32_t head, operand_count;
    size_t first_operand;
  };
  /// An entry of a hash table: the index of a node, and bits of its id, which tell most other nodes apart from it.
  struct Slot {
    uint32_t number = UINT32_MAX, tag = 0;
    bool free() const { return number == UINT32_MAX; }
  };

  /// Terms are divided by the first bits of their ids.
  struct Shard {
    mutable std::mutex mutex;
    std::deque<Node> nodes;
    std::deque<TermId> operands;
    std::vector<Slot> slots = std::vector<Slot>(256);  ///< a power of two, with linear probing

    size_t slot_of(const TermId& id) const;
    void grow();
  };
  static constexpr size_t kShards = 16;
  static size_t shard_of(const TermId& id) { return id.high >> 60; }

  mutable std::mutex heads_mutex_;
  std::unordered_map<std::string_view, const Named*> known_heads_;  ///< by their bytes, which heads_ holds
  std::deque<Named> heads_;
  std::array<Shard, kShards> shards_;
};

}  // namespace plumbline::proof
