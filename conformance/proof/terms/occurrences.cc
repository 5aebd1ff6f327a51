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
  const std::lock_guard lock(mutex_);
  if (entries_.size() <= number) entries_.resize(number + 1);
  Entry& entry = entries_[number];
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
  const std::lock_guard lock(mutex_);
  if (number >= entries_.size() || !entries_[number].known) return {};
  const Entry& entry = entries_[number];
  return {entry.rank, entry.stage, entry.microbatch, entry.action};
}

int Occurrences::times(size_t number) const {
  const std::lock_guard lock(mutex_);
  return number < entries_.size() ? entries_[number].times : 0;
}

}  // namespace plumbline::proof
