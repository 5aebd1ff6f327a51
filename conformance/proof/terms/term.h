// Terms: how a value was computed. A term is an operator with its attributes and the terms of its operands; a leaf (a
// parameter, rows of an input) has no operands. Its identity is a hash of all of this, so equal identities mean equal
// terms down to the leaves, in any run, thread or process.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
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

/// The terms of one or several runs, each once. Thread-safe.
class Terms {
 public:
  /// Adds the term unless it is known.
  TermId add(Term term);
  /// The term of an id that add() returned. Valid as long as this object.
  const Term& at(const TermId& id) const;
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<TermId, const Term*, TermIdHash> by_id_;
  std::deque<Term> terms_;
};

}  // namespace plumbline::proof
