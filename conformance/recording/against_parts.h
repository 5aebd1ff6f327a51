// The parts of against.cc: an aligned value, its bounds, and the sentence on where to look.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/judge/compare.h"
#include "conformance/recording/step.h"

namespace plumbline::conformance {

/// A value of both runs, or of one run if the other lacks it. The steps own the tensors.
struct AlignedValue {
  ValueKey key = {};
  std::string parameter = {};            ///< of a gradient: the name of its contributions (Recording::tied)
  int stage = -1;                        ///< in the pipelined run; -1: missing there, or does not apply
  int rank = -1;                         ///< likewise
  const HostTensor* expected = nullptr;  ///< from the one-rank run; null: missing there
  const HostTensor* actual = nullptr;    ///< from the pipelined run; null: missing there
  /// Of a contribution: those of the parameter's copies, of which it is the sum; itself if there is only one.
  std::vector<const HostTensor*> summands = {};
  bool differs = false;
  bool contributions_equal = false;              ///< for a gradient: the contributions of all micro-batches are equal
  std::optional<Difference> out_of_bounds = {};  ///< set if perturbed runs gave bounds and the value exceeds them
};

/// The parts of a step, in causal order.
enum class Direction { Forward, Loss, Backward, Accumulation, Buffers };

/// Backward includes the contributions of micro-batches to gradients; Accumulation has the gradients of the step.
Direction direction_of(reference::ResultKind kind);
/// As in AgainstVerdict::direction.
std::string_view direction_name(Direction direction);

/// The qualified name of a value's module: "layers.3" for "layers.3#1:out.hidden" and for the parameter
/// "layers.3.weight".
std::string module_of(std::string_view name);

/// Whether both runs have the value, in the same floating-point dtype and the same shape.
bool comparable(const AlignedValue& value);

/// The Euclidean norm of all elements.
double norm(const HostTensor& tensor);

/// Whether both runs' values can be the sum of `summands`, times `scale`, in different orders (against.h states the
/// bound). The summands have the shape of the value.
bool same_sum(const AlignedValue& value, const std::vector<const HostTensor*>& summands, double scale);

/// A value and its bounds, as compare() takes them.
struct BoundedValue {
  HostTensor expected;  ///< F64
  Bounds bounds;
  double largest_ratio(const HostTensor& actual) const;  ///< the largest error over its bound; 0/0 is 0
};

/// The bounds of a value from its changes in perturbed runs (against.h states the formula). `value` must outlive this
/// object.
class Scatter {
 public:
  explicit Scatter(const HostTensor& value);
  /// Adds the value of a perturbed run. Returns false, and adds nothing, if its dtype or shape differs.
  bool add(const HostTensor& sample);
  /// The bounds under the result key `key`. Precondition: add() succeeded at least once.
  BoundedValue bounded(const std::string& key) const;

 private:
  const HostTensor* value_;
  std::vector<double> largest_;  ///< of |d_i|, for each element
  double squares_ = 0;           ///< the sum of ||d_i||^2
  int samples_ = 0;
};

/// One sentence that locates the cause of values[first], the first value that differs. `values` are the values of step
/// `step` in causal order.
std::string where_to_look(const std::vector<AlignedValue>& values, size_t first, int step);

}  // namespace plumbline::conformance
