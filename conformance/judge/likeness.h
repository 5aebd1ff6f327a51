// What a wrong value resembles: another micro-batch's value, or a multiple of the expected one. Frameworks most often
// fail by one factor (a division by the number of micro-batches that is left out or done twice), which two numbers of
// one element do not show. No torch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/judge/compare.h"
#include "reference/result_key.h"

namespace plumbline::conformance {

/// A rational number in lowest terms; the denominator is positive.
struct Factor {
  int numerator = 1;
  int denominator = 1;

  bool operator==(const Factor&) const = default;
};

/// The results that a comparison had: both maps are keyed by result key.
struct Compared {
  const TensorMap& expected;
  const TensorMap& actual;
  CompareMode mode = CompareMode::Numeric;
  const Bounds& bounds;
};

/// The factor that turns every element of `expected` into that of `actual`: up to `bound` in Bounded, where `expected`
/// is F64; otherwise exactly or else up to a few roundings of the dtype (a third of a whole number is rounded). Nullopt
/// if there is none with small terms (at most 64, or 1/n and n up to 4096; less for few elements), or if the tensors
/// differ in shape, are not floating-point, or `expected` is all zeros and `actual` is not. All zeros in both have
/// every factor and give 1.
std::optional<Factor> factor_between(const HostTensor& expected, const HostTensor& actual, CompareMode mode,
                                     const HostTensor* bound = nullptr);

/// "4 times", "1/4 of", "-1 times", followed for powers of the number of micro-batches M > 1 by the power:
/// "1/16 of what is expected (1/M^2, M = 4 micro-batches)".
std::string factor_text(const Factor& factor, int microbatches);

/// What the wrong tensor under `key` is instead: "zero", "micro-batch 1's", "step 1's", "stage 2's",
/// "`layers.1`'s", "4 times what is expected (M = 4 micro-batches)"; empty if it resembles nothing. Of several equal
/// ones the nearest is named: another micro-batch, another step, another stage, another tensor.
std::string likeness(const reference::ResultKey& key, const Compared& compared, int microbatches);

/// The stages that hold each parameter, ascending: those that have a partial gradient of it among the expected results.
std::map<std::string, std::vector<int>> stages_of_parameters(const TensorMap& expected);

/// One clause about the first step that has wrong gradients: the factor of all gradients, or the factors by stage, or
/// that no single factor explains them. Empty if all gradients are right, and if some are missing.
std::string gradient_pattern(const Compared& compared, const std::map<std::string, std::vector<int>>& stages,
                             int microbatches);

}  // namespace plumbline::conformance
