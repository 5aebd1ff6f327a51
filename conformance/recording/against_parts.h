// The parts of against.cc: an aligned value, its bounds, and the sentence on where to look.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/judge/compare.h"
#include "conformance/recording/recording.h"

namespace plumbline::conformance {

/// A value of both runs, or of one run if the other lacks it.
struct AlignedValue {
  ValueKey key = {};
  int stage = -1;  ///< in the pipelined run
  int rank = -1;
  const HostTensor* expected = nullptr;
  const HostTensor* actual = nullptr;
  bool differs = false;
  bool contributions_equal = false;              ///< of a gradient: the contributions of all micro-batches are equal
  std::optional<Difference> out_of_bounds = {};  ///< set only if perturbed runs gave bounds
};

/// In their causal order within a step.
enum class Direction { Forward, Loss, Backward, Accumulation, Buffers };

Direction direction_of(reference::ResultKind kind);
std::string_view direction_name(Direction direction);

/// Whether a name is that of a module's input or output ("layers.3:in"), not of a parameter or buffer.
bool is_event(std::string_view name);
/// "layers.3" of "layers.3#1:out.hidden", and of the parameter "layers.3.weight".
std::string module_of(std::string_view name);

/// Whether both runs have the value, in the same floating dtype and the same shape.
bool comparable(const AlignedValue& value);

/// The Euclidean norm.
double norm(const HostTensor& tensor);

/// Whether a gradient can be the sum of these contributions, times `scale`, in another order (against.h has the bound).
bool same_sum(const AlignedValue& gradient, const std::vector<const AlignedValue*>& contributions, double scale);

/// A value and its bounds, as compare() takes them.
struct BoundedValue {
  HostTensor expected;  ///< in F64
  Bounds bounds;
  double largest_ratio(const HostTensor& actual) const;  ///< the largest error over its bound; 0/0 is 0
};

/// How far perturbed runs moved a value (against.h has the formula).
class Scatter {
 public:
  explicit Scatter(const HostTensor& value);
  /// Adds a perturbed run's value; returns false if its dtype or shape is another.
  bool add(const HostTensor& sample);
  BoundedValue bounded(const std::string& key) const;

 private:
  const HostTensor* value_;
  std::vector<double> largest_;  ///< of |d_i|, for each element
  double squares_ = 0;           ///< the sum of ||d_i||^2
  int samples_ = 0;
};

/// One sentence about values[first], the first value that differs. `values` are those of a step in causal order.
std::string where_to_look(const std::vector<AlignedValue>& values, size_t first, int step);

}  // namespace plumbline::conformance
