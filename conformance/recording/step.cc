#include "conformance/recording/step.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace plumbline::conformance {
namespace {

/// The sum of the copies, if they have one form.
std::optional<HostTensor> sum_of(const std::vector<RecordedCopy>& copies) {
  HostTensor sum{copies.front().tensor.dtype, copies.front().tensor.shape, {}};
  if (!is_floating(sum.dtype)) return std::nullopt;
  for (const RecordedCopy& copy : copies)
    if (copy.tensor.dtype != sum.dtype || copy.tensor.shape != sum.shape) return std::nullopt;
  sum.data.reserve(copies.front().tensor.data.size());
  for (int64_t i = 0; i < element_count(sum); ++i) {
    double element = element_as_double(copies.front().tensor, i);
    for (size_t copy = 1; copy < copies.size(); ++copy) element += element_as_double(copies[copy].tensor, i);
    append_element(sum, element);
  }
  return sum;
}

/// The pieces one after the other along the first dimension, if they fit.
std::optional<HostTensor> joined(const std::vector<const HostTensor*>& pieces) {
  HostTensor whole = *pieces.front();
  if (whole.shape.empty()) return std::nullopt;
  for (size_t i = 1; i < pieces.size(); ++i) {
    const HostTensor& piece = *pieces[i];
    if (piece.dtype != whole.dtype || piece.shape.size() != whole.shape.size() ||
        !std::equal(piece.shape.begin() + 1, piece.shape.end(), whole.shape.begin() + 1))
      return std::nullopt;
    whole.shape[0] += piece.shape[0];
    whole.data.insert(whole.data.end(), piece.data.begin(), piece.data.end());
  }
  return whole;
}

}  // namespace

bool is_event(std::string_view name) { return name.find(':') != std::string_view::npos; }

bool is_contribution(const ValueKey& key) { return key.kind == reference::ResultKind::Backward && !is_event(key.name); }

const std::string& first_name(const std::map<std::string, std::string>& tied, const std::string& name) {
  const auto found = tied.find(name);
  return found == tied.end() ? name : found->second;
}

Step add_up_copies(RecordedStep values, const std::map<std::string, std::string>& tied) {
  Step step;
  for (auto& [key, copies] : values) {
    const std::string& name = is_contribution(key) ? first_name(tied, key.name) : key.name;
    std::vector<RecordedCopy>& all = step.values[{key.kind, key.microbatch, name}];
    std::move(copies.begin(), copies.end(), std::back_inserter(all));
  }
  for (auto& [key, copies] : step.values) {
    if (!is_contribution(key) || copies.size() < 2) continue;
    std::optional<HostTensor> sum = sum_of(copies);
    if (!sum) continue;
    for (RecordedCopy& copy : copies) step.summands[key].push_back(std::move(copy.tensor));
    copies.resize(1);
    copies.front().stage = -1;
    copies.front().tensor = std::move(*sum);
  }
  return step;
}

void join_uncut(RecordedStep& whole, const RecordedStep& run) {
  std::map<std::pair<reference::ResultKind, std::string_view>, std::vector<const HostTensor*>> pieces;
  for (const auto& [key, copies] : whole)  // micro-batches ascend
    if (is_event(key.name)) pieces[{key.kind, key.name}].push_back(&copies.front().tensor);
  std::map<ValueKey, HostTensor> uncut;
  bool any_cut = false;  // a script that does not cut its batch at all has a fault
  for (const auto& [key, copies] : whole) {
    const auto found = run.find(key);
    if (!is_event(key.name) || found == run.end()) continue;
    const HostTensor& actual = found->second.front().tensor;
    any_cut = any_cut || actual.shape == copies.front().tensor.shape;
    if (actual.shape == copies.front().tensor.shape) continue;
    std::optional<HostTensor> all = joined(pieces[{key.kind, key.name}]);
    if (all && all->shape == actual.shape) uncut.emplace(key, std::move(*all));
  }
  if (!any_cut) return;
  for (auto& [key, tensor] : uncut) {
    if (key.kind == reference::ResultKind::Backward)
      whole.erase(key);
    else
      whole.at(key).front().tensor = std::move(tensor);
  }
}

}  // namespace plumbline::conformance
