#include "conformance/proof/terms/value.h"

#include <algorithm>
#include <numeric>

#include "runtime/graph/dtype_names.h"
#include "runtime/io/sha256.h"

namespace plumbline::proof {
namespace {

bool in_order(const Indices& picks) {
  for (size_t i = 0; i < picks.size(); ++i)
    if (picks[i] != static_cast<int32_t>(i)) return false;
  return true;
}

}  // namespace

int64_t count_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Value whole(const TermId& root, Sizes sizes, c10::ScalarType dtype) {
  return {.root = root, .root_sizes = sizes, .sizes = std::move(sizes), .dtype = dtype};
}

Value filled(Terms& terms, const std::string& number, Sizes sizes, c10::ScalarType dtype) {
  Value value = whole(terms.add({"fill", number + " " + type_text(dtype, sizes), {}}), std::move(sizes), dtype);
  value.number = number;
  return value;
}

Value picked(Terms& terms, const Value& value, std::shared_ptr<const Indices> picks, Sizes sizes) {
  if (!value.number.empty()) return filled(terms, value.number, std::move(sizes), value.dtype);
  Value result = value;
  result.sizes = std::move(sizes);
  if (!picks) return result;
  if (value.picks) {
    auto both = std::make_shared<Indices>();
    both->reserve(picks->size());
    for (const int32_t i : *picks) both->push_back(value.picks->at(i));
    picks = std::move(both);
  }
  const bool all = static_cast<int64_t>(picks->size()) == count_of(result.root_sizes) && in_order(*picks);
  result.picks = all ? nullptr : std::move(picks);
  return result;
}

TermId term_of(Terms& terms, const Value& value) {
  if (!value.picks && value.sizes == value.root_sizes) return value.root;
  std::string attributes = type_text(value.dtype, value.sizes);
  if (value.picks) {
    const Indices& picks = *value.picks;
    const auto [first, last] = std::ranges::minmax(picks);
    attributes += " from " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                  std::to_string(count_of(value.root_sizes)) + " " +
                  sha256({reinterpret_cast<const char*>(picks.data()), picks.size() * sizeof picks[0]});
  }
  return terms.add({"elements", std::move(attributes), {value.root}});
}

std::string type_text(c10::ScalarType dtype, const Sizes& sizes) {
  std::string text = std::string(graph::dtype_name(dtype)) + "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(sizes[i]);
  return text + "]";
}

}  // namespace plumbline::proof
