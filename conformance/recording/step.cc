#include "conformance/recording/step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace plumbline::conformance {
namespace {

/// The bits of the number nearest to `value` in a format with `fraction` stored bits and this least exponent.
uint64_t nearest_bits(double value, int fraction, int least_exponent) {
  const int exponent_bits = std::bit_width(static_cast<unsigned>(-least_exponent)) + 1;
  const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1) << fraction;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (fraction + exponent_bits) : 0;
  const double size = std::abs(value);
  if (std::isnan(value)) return infinity + (uint64_t{1} << (fraction - 1));
  if (size == 0 || std::isinf(value)) return sign + (size == 0 ? 0 : infinity);
  const int exponent = std::max(std::ilogb(size), least_exponent);
  const auto steps = static_cast<uint64_t>(std::nearbyint(std::ldexp(size, fraction - exponent)));
  // Of a normal number, `steps` has the leading bit, which is not stored: it counts as one exponent more.
  const uint64_t stored = (static_cast<uint64_t>(exponent - least_exponent) << fraction) + steps;
  return sign + std::min(stored, infinity);
}

/// Appends `value`, rounded to the dtype.
void append(HostTensor& tensor, double value) {
  uint64_t bits = 0;
  if (tensor.dtype == "F64") bits = std::bit_cast<uint64_t>(value);
  if (tensor.dtype == "F32") bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (tensor.dtype == "BF16") bits = nearest_bits(value, 7, -126);
  if (tensor.dtype == "F16") bits = nearest_bits(value, 10, -14);
  for (size_t i = 0; i < element_size(tensor.dtype); ++i)
    tensor.data.push_back(static_cast<std::byte>(bits >> (8 * i)));
}

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
    append(sum, element);
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
