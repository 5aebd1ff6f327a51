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
#include <optional>
#include <string>
#include <unordered_map>
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
  /// Not null: the root is the bits of this value, which has another type and lies in one row.
  std::shared_ptr<const Value> source = {};
};

/// All elements of a term with these sizes.
Value whole(const TermId& root, Sizes sizes, c10::ScalarType dtype);

/// A value whose elements are all the same number: what fill, zeros_like, ones_like, full make.
Value filled(Terms& terms, const std::string& number, Sizes sizes, c10::ScalarType dtype);

/// The value with `sizes` whose elements are those of the root of `value` at `picks` (null: all, in order).
Value picked(Terms& terms, const Value& value, std::shared_ptr<const Picks> picks, Sizes sizes);

/// Adds terms "elements", whose heads it keeps: most values are chosen alike. For one thread.
class Elements {
 public:
  /// `terms` must outlive this object.
  explicit Elements(Terms& terms) : terms_(terms) {}
  /// The identity of the value: the root's, or that of a term "elements" over it.
  TermId term_of(const Value& value);

 private:
  struct Key {
    std::shared_ptr<const Picks> picks;
    int64_t root_count;
    Sizes sizes;
    c10::ScalarType dtype;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  Terms& terms_;
  std::unordered_map<Key, Terms::Head, KeyHash> heads_;
};

/// A choice as the attributes of a term "elements" tell it.
struct Choice {
  std::string type;        ///< type_text() of the chosen elements
  int64_t root_count = 0;  ///< the number of elements of the root
  Loops loops = {};
};

/// The attributes: "f32[2,8] from 16 to 31 of 64 16+16x1,"
std::string attributes_of(const std::string& type, int64_t root_count, const Picks& picks);
/// The inverse; nullopt for a choice that no loops describe, and for all elements.
std::optional<Choice> choice_of(const std::string& attributes);

/// "f32[2,3]"
std::string type_text(c10::ScalarType dtype, const Sizes& sizes);

}  // namespace plumbline::proof
