// Compares the results of a run with the expected results and lists the differences in causal order.
//
// Each kind of truth (docs/truth.md) has its mode: equal as numbers, equal as bytes, or within a bound for each element
// and a gate on the relative norm. The comparison has no tolerance of its own: bounds and gates come from the caller.
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
  Numeric,  ///< exact truth: dtype and shape equal, elements equal as numbers (-0 equals +0, NaN equals nothing)
  Bitwise,  ///< same-order truth: dtype and shape equal, the same bytes, also of a NaN
  Bounded,  ///< bounded truth: each element within its bound, each tensor within its norm gate
};

/// The second gate of bounded truth: ||actual - expected|| <= limit * max(||expected||, floor), Euclidean norms.
struct NormGate {
  double limit = 0.0;  ///< relative, without unit
  /// For values that are small because large values cancel (a bias before a normalisation): the norm of those large
  /// values. 0: no floor.
  double floor = 0.0;
};

/// The limits of CompareMode::Bounded. Every expected floating-point tensor has an entry under its key in both members.
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

/// The element at Difference::index, or an element near it.
struct Neighbour {
  int64_t index = 0;              ///< row-major
  std::vector<int64_t> position;  ///< the coordinates of `index`
  std::string expected_text;      ///< as in Difference
  std::string actual_text;
  bool differs = false;         ///< bounded: the element is out of its bound
  double ratio_of_bound = 0.0;  ///< bounded: |actual - expected| / bound; infinite if one of them is not finite

  bool operator==(const Neighbour&) const = default;
};

/// One tensor that differs. The fields from `bounded` on are set for Value and Norm only, except `elements`. "Bounded:"
/// marks the meaning of a field in CompareMode::Bounded for floating-point tensors. compare() leaves `stages` and
/// `likeness` empty; the judge sets them.
struct Difference {
  reference::ResultKey key;
  std::vector<int> stages;  ///< of grad and param: those that hold the parameter, ascending
  DifferenceKind what = DifferenceKind::Value;
  std::string expected_form;  ///< "f32[2,8]"; empty when unexpected
  std::string actual_form;    ///< likewise; empty when missing
  bool bounded = false;       ///< whether bounds judged the tensor
  int64_t index = -1;         ///< row-major: the first element that differs; bounded: the worst relative to its bound
  std::vector<int64_t> position;  ///< the coordinates of `index`
  double expected = 0.0;
  double actual = 0.0;
  std::string expected_text;  ///< the shortest text of the value in its dtype, with its bits if both texts are equal
  std::string actual_text;
  double max_abs = 0.0;             ///< largest |actual - expected|; infinite if one of them is not finite
  double max_ratio_of_bound = 0.0;  ///< bounded: largest |actual - expected| / bound; infinite likewise
  int64_t differing = 0;            ///< number of elements that differ; bounded: that are out of their bound
  int64_t elements = 0;             ///< number of elements of the expected tensor; 0 for Missing and Unexpected
  double relative_norm = 0.0;       ///< ||actual - expected|| / max(||expected||, NormGate::floor); 0/0 is 0
  double norm_limit = 0.0;          ///< bounded: the largest relative_norm allowed
  /// The element at `index` and up to kNeighbours on each side of it, in row-major order.
  std::vector<Neighbour> around;
  std::string likeness;  ///< what the value is (likeness.h), or is missing, instead; empty: unknown
};

/// The number of elements that Difference::around keeps on each side of `index`.
inline constexpr int64_t kNeighbours = 4;

/// The margin to the bounds: the element that came closest to its bound, and the tensor that came closest to its norm
/// gate. A ratio above 1 exceeds the limit.
struct BoundUse {
  std::string key;          ///< result key of the tensor with that element; empty: no tensor was compared
  double ratio = 0.0;       ///< largest |actual - expected| / bound
  std::string norm_key;     ///< result key of the tensor; empty likewise
  double norm_ratio = 0.0;  ///< largest relative norm / limit

  bool operator==(const BoundUse&) const = default;
};

/// Returns every tensor that differs, in causal order (causal_less in reference/result_key.h). The maps are keyed by
/// result key. In Bounded, expected floating-point tensors are F64, and actual tensors may have any floating-point
/// dtype; tensors of integers and booleans must be equal, dtype included; a value or bound that is not finite fails.
/// Throws InputError for a text that is not a result key. In Bounded, throws Error if an expected floating-point tensor
/// is not F64, has no bound of its shape, or has no norm gate.
std::vector<Difference> compare(const TensorMap& expected, const TensorMap& actual, CompareMode mode,
                                const Bounds& bounds = {});

/// Returns the margin over the floating-point tensors of `expected` that `actual` has in the same shape. Throws Error
/// as compare() does in Bounded.
BoundUse bound_use(const TensorMap& expected, const TensorMap& actual, const Bounds& bounds);

/// Whether element `index` (row-major) of two tensors of one dtype has the same bits in both.
bool same_bits(const HostTensor& a, const HostTensor& b, int64_t index);

/// The bits of element `index`: "0x80000000" is -0 in f32.
std::string bits_of(const HostTensor& tensor, int64_t index);

/// The distance between `a` and `b`, counted in representable numbers of `dtype` ("f32", as in
/// Difference::expected_form): units in the last place if their exponents are equal. Both must be representable in
/// `dtype`. Negative for a dtype other than f64, f32, f16 and bf16, and if one of them is not finite.
double ulps_between(std::string_view dtype, double a, double b);

/// The key of a loss, gradient, parameter or optimizer state that has a NaN; empty if none has.
std::string first_nan(const TensorMap& results);

/// The fraction of zeros among all elements of the kinds backward and grad; 0 without such elements. Results with too
/// many zeros prove little: see Status::Mistrusted.
double zero_fraction(const TensorMap& results);

}  // namespace plumbline::conformance
