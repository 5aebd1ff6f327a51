// Holds the results of a run against what they should be, and says what differs, first cause first.
//
// Three ways, one for each kind of truth (docs/truth.md): as numbers, as bytes, or within a bound for each element and
// a gate on the relative norm. There is no tolerance here that the caller did not derive.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/result_key.h"
#include "runtime/tensor_file.h"

namespace plumbline {

enum class CompareMode {
  Numeric,  ///< equal as numbers: -0 equals +0, NaN equals nothing; dtype and shape equal (exact truth)
  Bitwise,  ///< the same bytes, NaN payloads too; dtype and shape equal (same-order truth)
  Bounded,  ///< within the bounds of each element and the gate of each tensor
};

/// The second gate of bounded truth: ||actual - expected|| <= limit * max(||expected||, floor), Euclidean norms.
struct NormGate {
  double limit = 0.0;
  /// For values that are small because large ones cancel (a bias before a normalisation): the norm of what cancelled.
  double floor = 0.0;
};

/// What Bounded holds results against. Every expected F64 tensor has an entry under the same key in both.
struct Bounds {
  TensorMap elements;  ///< F64, same shape as the expected: the largest |actual - expected| allowed, element by element
  std::map<std::string, NormGate> norms;
};

enum class DifferenceKind {
  Missing,     ///< expected, not delivered
  Unexpected,  ///< delivered, not expected
  Dtype,
  Shape,
  Value,
  Norm,  ///< every element is within its bound, the tensor is over its norm gate
};

/// "missing", "unexpected", "dtype", "shape", "value", "norm".
std::string_view difference_name(DifferenceKind kind);

/// One tensor that is not as it should be. The fields from `index` on speak of Value and Norm only.
struct Difference {
  ResultKey key;
  DifferenceKind what = DifferenceKind::Value;
  std::string expected_form;      ///< "f32[2,8]"; empty when unexpected
  std::string actual_form;        ///< likewise; empty when missing
  bool bounded = false;           ///< judged by a bound: `index` is the worst element, else the first that differs
  int64_t index = -1;             ///< row-major
  std::vector<int64_t> position;  ///< the same as coordinates
  double expected = 0.0;
  double actual = 0.0;
  std::string expected_text;  ///< shortest text that tells the two values apart in their dtype, bits where needed
  std::string actual_text;
  double max_abs = 0.0;             ///< largest |actual - expected|; infinite where one of them is not finite
  double max_ratio_of_bound = 0.0;  ///< bounded: largest |actual - expected| / bound; infinite likewise
  int64_t differing = 0;            ///< elements that differ, or that are out of their bound
  int64_t elements = 0;
  double relative_norm = 0.0;  ///< ||actual - expected|| / max(||expected||, floor); 0/0 is 0
  double norm_limit = 0.0;     ///< bounded: what relative_norm had to stay within
};

/// Every tensor that differs, in causal order: the first is where the trouble begins. Keys are result keys in text
/// form (InputError for another text). In Bounded, expected floating tensors are F64 and the actual ones may have any
/// floating dtype; tensors of integers and booleans must be equal, dtype too; anything that is not finite, in either
/// map or in a bound, fails. Error when an expected F64 tensor has no bound of its shape, or no gate.
std::vector<Difference> compare(const TensorMap& expected, const TensorMap& actual, CompareMode mode,
                                const Bounds& bounds = {});

/// The part of all elements of kinds backward and grad that is zero (0 when there are none): results with too many
/// zeros prove little, and are mistrusted.
double zero_fraction(const TensorMap& results);

}  // namespace plumbline
