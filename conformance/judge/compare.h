// Compares the results of a run with the expected ones and lists the differences in causal order.
//
// One mode for each kind of truth (docs/truth.md): as numbers, as bytes, or within a bound for each element and a gate
// on the relative norm. Every tolerance comes from the caller, who derived it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/result_key.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::conformance {

enum class CompareMode {
  Numeric,  ///< equal as numbers: -0 equals +0, NaN equals nothing; dtype and shape equal (exact truth)
  Bitwise,  ///< the same bytes, NaN payloads too; dtype and shape equal (same-order truth)
  Bounded,  ///< each element within its bound, each tensor within its gate
};

/// The second gate of bounded truth: ||actual - expected|| <= limit * max(||expected||, floor), Euclidean norms.
struct NormGate {
  double limit = 0.0;
  /// For values that are small because large ones cancel (a bias before a normalisation): the norm of the large ones.
  double floor = 0.0;
};

/// The limits of Bounded. Every expected F64 tensor has an entry under the same key in both members.
struct Bounds {
  TensorMap elements;  ///< F64, in the expected shape: the largest |actual - expected| allowed for each element
  std::map<std::string, NormGate> norms;
};

enum class DifferenceKind {
  Missing,     ///< expected, not delivered
  Unexpected,  ///< delivered, not expected
  Dtype,
  Shape,
  Value,
  Norm,  ///< every element is within its bound, but the tensor exceeds its norm gate
};

/// "missing", "unexpected", "dtype", "shape", "value", "norm".
std::string_view difference_name(DifferenceKind kind);

/// The element that a difference points at, or one next to it.
struct Neighbour {
  int64_t index = 0;  ///< row-major
  std::vector<int64_t> position;
  std::string expected_text;
  std::string actual_text;
  bool differs = false;         ///< Bounded: is out of its bound
  double ratio_of_bound = 0.0;  ///< bounded: |actual - expected| / bound

  bool operator==(const Neighbour&) const = default;
};

/// One tensor that differs. The fields from `index` on are set for Value and Norm only.
struct Difference {
  reference::ResultKey key;
  DifferenceKind what = DifferenceKind::Value;
  std::string expected_form;      ///< "f32[2,8]"; empty when unexpected
  std::string actual_form;        ///< likewise; empty when missing
  bool bounded = false;           ///< judged by a bound: `index` is the worst element; else the first that differs
  int64_t index = -1;             ///< row-major
  std::vector<int64_t> position;  ///< the same as coordinates
  double expected = 0.0;
  double actual = 0.0;
  std::string expected_text;  ///< shortest text that distinguishes the two values in their dtype, with bits if needed
  std::string actual_text;
  double max_abs = 0.0;             ///< largest |actual - expected|; infinite if one of them is not finite
  double max_ratio_of_bound = 0.0;  ///< bounded: largest |actual - expected| / bound; infinite likewise
  int64_t differing = 0;            ///< elements that differ; bounded: that are out of their bound
  int64_t elements = 0;
  double relative_norm = 0.0;  ///< ||actual - expected|| / max(||expected||, floor); 0/0 is 0
  double norm_limit = 0.0;     ///< bounded: the largest relative_norm allowed
  /// The element at `index` and up to kNeighbours on each side of it, in row-major order.
  std::vector<Neighbour> around;
};

/// How many elements Difference::around keeps on each side of `index`.
inline constexpr int64_t kNeighbours = 4;

/// How close results came to their bounds: the element that used the largest part of its bound, and the tensor that
/// used the largest part of its norm gate.
struct BoundUse {
  std::string key;  ///< of the tensor with that element, as text
  double ratio = 0.0;
  std::string norm_key;
  double norm_ratio = 0.0;

  bool operator==(const BoundUse&) const = default;
};

/// Every tensor that differs, in causal order. Keys are result keys in text form (InputError for another text). In
/// Bounded, expected floating tensors are F64 and the actual ones may have any floating dtype; tensors of integers and
/// booleans must be equal, dtype included; a value or bound that is not finite fails. Throws Error if an expected F64
/// tensor has no bound of its shape, or no gate.
std::vector<Difference> compare(const TensorMap& expected, const TensorMap& actual, CompareMode mode,
                                const Bounds& bounds = {});

/// Over the floating tensors of `expected` that `actual` has in the same shape. Errors: as compare() in Bounded.
BoundUse bound_use(const TensorMap& expected, const TensorMap& actual, const Bounds& bounds);

/// The number of steps from `a` to `b` through the numbers of `dtype` ("f32", as in Difference::expected_form), which
/// must contain both: units in the last place if their exponents are equal. Negative for a dtype other than f64, f32,
/// f16 and bf16, and if either is not finite.
double ulps_between(std::string_view dtype, double a, double b);

/// The fraction of zeros among all elements of kinds backward and grad (0 without elements): results with too many
/// zeros prove little, and are mistrusted.
double zero_fraction(const TensorMap& results);

}  // namespace plumbline::conformance
