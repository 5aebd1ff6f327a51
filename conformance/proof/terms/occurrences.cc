#include "conformance/proof/terms/occurrences.h"

#include <limits>

namespace plumbline::proof {

std::string to_string(const Place& place) {
  std::string text;
  if (place.stage >= 0) text = "stage " + std::to_string(place.stage);
  if (place.microbatch >= 0) text += (text.empty() ? "" : ", ") + ("micro-batch " + std::to_string(place.microbatch));
  if (place.action != 0) text += std::string(" (") + place.action + ")";
  return text;
}

void Occurrences::note(size_t number, const Place& place) {
  Shard& shard = shards_[number % kShards];
  const std::lock_guard lock(shard.mutex);
  if (shard.entries.size() <= number / kShards) shard.entries.resize(number / kShards + 1);
  Entry& entry = shard.entries[number / kShards];
  if (place.action != 0 && entry.times < std::numeric_limits<uint16_t>::max()) ++entry.times;
  if (entry.known && entry.rank <= place.rank) return;
  entry.known = true;
  entry.rank = static_cast<int16_t>(place.rank);
  entry.stage = static_cast<int16_t>(place.stage);
  entry.microbatch = place.microbatch;
  entry.action = place.action;
}

Place Occurrences::first(const TermId& id) const {
  const size_t number = terms_.number_of(id);
  const Shard& shard = shards_[number % kShards];
  const std::lock_guard lock(shard.mutex);
  if (number / kShards >= shard.entries.size() || !shard.entries[number / kShards].known) return {};
  const Entry& entry = shard.entries[number / kShards];
  return {entry.rank, entry.stage, entry.microbatch, entry.action};
}

int Occurrences::times(size_t number) const {
  const Shard& shard = shards_[number % kShards];
  const std::lock_guard lock(shard.mutex);
  return number / kShards < shard.entries.size() ? shard.entries[number / kShards].times : 0;
}

}  // namespace plumbline::proof
