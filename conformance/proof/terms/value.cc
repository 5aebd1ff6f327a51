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
  Value value = whole(terms.add({"fill", number + " " + type_text(dtype, sizes), {}}), std::move(sizes), dtype);
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

TermId term_of(Terms& terms, const Value& value) {
  if (!value.picks && value.sizes == value.root_sizes) return value.root;
  std::string attributes = type_text(value.dtype, value.sizes);
  if (value.picks)
    attributes +=
        " " + value.picks->range() + " of " + std::to_string(count_of(value.root_sizes)) + " " + value.picks->text();
  return terms.add(terms.head("elements", attributes), {&value.root, 1});
}

std::string type_text(c10::ScalarType dtype, const Sizes& sizes) {
  std::string text = std::string(graph::dtype_name(dtype)) + "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(sizes[i]);
  return text + "]";
}

}  // namespace plumbline::proof
