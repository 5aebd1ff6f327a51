// Terms: how a value was computed. A term is an operator with its attributes and the terms of its operands; a leaf (a
// parameter, rows of an input) has no operands. Its identity is a hash of all of this, so equal identities mean equal
// terms down to the leaves, in any run, thread or process.
#pragma once

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
/// are kept once. Thread-safe.
class Terms {
 public:
  /// An operator with its attributes. Numbers from 0 on.
  using Head = uint32_t;

  Head head(std::string_view op, std::string_view attributes);
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
  /// Terms are numbered from 0 on, in the order in which they were added.
  size_t number_of(const TermId& id) const;
  TermId id_of(size_t number) const;
  /// Whether there is a term of this operator.
  bool any(std::string_view op) const;

 private:
  struct Named {
    std::string op, attributes;
    std::string bytes;  ///< with which those of its terms begin
  };
  struct Node {
    TermId id;
    Head head;
    uint32_t operand_count;
    size_t first_operand;
  };
  /// Of the table of nodes: where a node is, and some bits of its id, so that most others need not be looked at.
  struct Slot {
    uint32_t number = UINT32_MAX, tag = 0;
    bool free() const { return number == UINT32_MAX; }
  };

  size_t slot_of(const TermId& id) const;
  void grow();

  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, Head> known_heads_;  ///< by their bytes, which heads_ holds
  std::deque<Named> heads_;
  std::deque<Node> nodes_;
  std::deque<TermId> operands_;
  std::vector<Slot> slots_ = std::vector<Slot>(1024);  ///< a power of two, with linear probing
};

}  // namespace plumbline::proof
