// Occurrences: where the operators of a run were executed, and how often.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <string>

#include "conformance/proof/terms/term.h"

namespace plumbline::proof {

/// Where in a run an operator was executed.
struct Place {
  int rank = -1, stage = -1, microbatch = -1;  ///< -1: does not apply
  char action = 0;                             ///< 'F', 'B', 'I', 'W', or 0: between actions

  bool operator==(const Place&) const = default;
};

/// "stage 1, micro-batch 3 (B)"; empty if nothing applies.
std::string to_string(const Place& place);

/// The occurrences in all ranks of a run. Thread-safe.
class Occurrences {
 public:
  /// `terms` must outlive this object.
  explicit Occurrences(const Terms& terms) : terms_(terms) {}

  /// Term number `number` was computed at `place`.
  void note(size_t number, const Place& place);
  /// Where the lowest of the ranks that computed the term did so first; nowhere (Place()) if none did.
  Place first(const TermId& id) const;
  /// The largest count.
  static constexpr int kMostTimes = std::numeric_limits<uint16_t>::max();
  /// How often the term was computed inside of actions, at most kMostTimes.
  int times(const TermId& id) const { return times(terms_.number_of(id)); }
  int times(size_t number) const;

 private:
  struct Entry {
    int32_t microbatch = -1;
    int16_t rank = -1, stage = -1;
    uint16_t times = 0;
    char action = 0;
    bool known = false;
  };

  /// Of the terms whose numbers have one remainder.
  struct Shard {
    mutable std::mutex mutex;
    std::deque<Entry> entries;
  };
  static constexpr size_t kShards = 16;

  const Terms& terms_;
  std::array<Shard, kShards> shards_;
};

}  // namespace plumbline::proof
