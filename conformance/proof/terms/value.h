// Value: the content of a tensor as elements of a root term, whatever views and copies lie between.
//
// Views (transposes, slices, expansions) and copies compute nothing: they choose elements. A value is therefore a root,
// the result of an operator or a leaf, and the list of the root's elements that the tensor shows, in order. So a
// transposed view, its contiguous copy, and the copy that another rank received have the same term; how the elements
// lie in memory does not count.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/proof/terms/picks.h"
#include "conformance/proof/terms/term.h"

namespace plumbline::proof {

/// Without an allocation up to five dimensions.
using Sizes = c10::SmallVector<int64_t, 5>;

/// The number of elements.
int64_t count_of(const Sizes& sizes);

struct Value {
  TermId root;
  Sizes root_sizes;
  /// By element of this value in row-major order: the position of the root's element. Null: all elements, in order.
  std::shared_ptr<const Picks> picks = {};
  Sizes sizes;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  /// Not empty: every element is this number. Then the root has these sizes.
  std::string number = {};
};

/// All elements of a term with these sizes.
Value whole(const TermId& root, Sizes sizes, c10::ScalarType dtype);

/// A value whose elements are all the same number: what fill, zeros_like, ones_like, full make.
Value filled(Terms& terms, const std::string& number, Sizes sizes, c10::ScalarType dtype);

/// The value with `sizes` whose elements are those of the root of `value` at `picks` (null: all, in order).
Value picked(Terms& terms, const Value& value, std::shared_ptr<const Picks> picks, Sizes sizes);

/// The identity of the value: the root's, or that of a term "elements" over it.
TermId term_of(Terms& terms, const Value& value);

/// "float32[2,3]"
std::string type_text(c10::ScalarType dtype, const Sizes& sizes);

}  // namespace plumbline::proof
