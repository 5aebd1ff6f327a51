#include "conformance/proof/terms/value.h"

#include <numeric>

#include "runtime/graph/dtype_names.h"

namespace plumbline::proof {

int64_t count_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Value whole(const TermId& root, Sizes sizes, c10::ScalarType dtype) {
  return {.root = root, .root_sizes = sizes, .sizes = std::move(sizes), .dtype = dtype};
}

Value filled(Terms& terms, const std::string& number, Sizes sizes, c10::ScalarType dtype) {
  const TermId root = terms.add({"fill", number + " " + type_text(dtype, sizes), {}});
  Value value = whole(root, std::move(sizes), dtype);
  value.number = number;
  return value;
}

Value picked(Terms& terms, const Value& value, std::shared_ptr<const Picks> picks, Sizes sizes) {
  if (!value.number.empty()) return filled(terms, value.number, std::move(sizes), value.dtype);
  Value result = value;
  result.sizes = std::move(sizes);
  result.picks = picks && picks->are_all(count_of(result.root_sizes)) ? nullptr : std::move(picks);
  return result;
}

std::string attributes_of(const std::string& type, int64_t root_count, const Picks& picks) {
  return type + " " + picks.range() + " of " + std::to_string(root_count) + " " + picks.text();
}

std::optional<Choice> choice_of(const std::string& attributes) {
  const size_t range = attributes.find(" from "), count = attributes.find(" of ");
  if (range == std::string::npos || count == std::string::npos) return std::nullopt;
  const size_t last = attributes.rfind(' ');
  const std::optional<Loops> loops = loops_of_text(std::string_view(attributes).substr(last + 1));
  if (!loops) return std::nullopt;
  return Choice{attributes.substr(0, range), std::stoll(attributes.substr(count + 4)), *loops};
}

size_t Elements::KeyHash::operator()(const Key& key) const {
  size_t hash = std::hash<std::shared_ptr<const Picks>>()(key.picks);
  for (const int64_t size : key.sizes) hash = hash * 31 + static_cast<size_t>(size);
  return hash;
}

TermId Elements::term_of(const Value& value) {
  if (!value.picks && value.sizes == value.root_sizes) return value.root;
  const Key key{value.picks, count_of(value.root_sizes), value.sizes, value.dtype};
  auto known = heads_.find(key);
  if (known == heads_.end()) {
    const std::string type = type_text(value.dtype, value.sizes);
    const std::string attributes = value.picks ? attributes_of(type, key.root_count, *value.picks) : type;
    known = heads_.emplace(key, terms_.head("elements", attributes)).first;
  }
  return terms_.add(known->second, {&value.root, 1});
}

std::string type_text(c10::ScalarType dtype, const Sizes& sizes) {
  std::string text = std::string(graph::dtype_name(dtype)) + "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(sizes[i]);
  return text + "]";
}

}  // namespace plumbline::proof
