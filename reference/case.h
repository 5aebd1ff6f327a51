// A conformance case as plain data: which model, which data, which steps, and which kind of truth judges the result.
// Everything that can run a case (the runtime, an oracle, a foreign backend) works from this description alone;
// numbers come from (seed, name, index), so that each rank makes its own part and all agree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// What a result is held against; see docs/truth.md.
enum class Truth {
  Exact,      ///< integer-valued data, every partial sum representable: bitwise in any order, against the whole model
  SameOrder,  ///< real data: bitwise against the detached stages run in the schedule's own order of accumulation
  Bounded,    ///< float64 value with a running error bound for each element and a gate on the relative norm
};

enum class LossKind {
  Sum,           ///< sum (or mean) of output 0; no target
  Mse,           ///< squared difference of output 0 and the target
  CrossEntropy,  ///< output 0 [..., classes] against integer targets [...]
  Output,        ///< output 0 is the loss already (a scalar for each micro-batch); the target is an input of the model
};

enum class Reduction { Sum, Mean };

struct LossSpec {
  LossKind kind = LossKind::Sum;
  Reduction reduction = Reduction::Sum;
};

enum class StepKind {
  Train,      ///< forward and backward of one batch; gradients accumulate
  Eval,       ///< forward of one batch; no gradient, no change of gradients
  ZeroGrad,   ///< forget the accumulated gradients
  Optimizer,  ///< update every parameter from its accumulated gradient
};

struct OptimizerSpec {
  double learning_rate = 0.0;
  double momentum = 0.0;
};

enum class Dtype { F32, BF16, F64 };

struct Case {
  std::string id;     ///< never changes its meaning; a corrected case gets a new id
  std::string title;  ///< one line for people
  std::string why;    ///< the class of bug it hunts
  Truth truth = Truth::Exact;
  std::string model;  ///< a name of reference/models/zoo.h
  Dtype dtype = Dtype::F32;
  int rows = 8;  ///< rows of a batch along the chunked dimension
  int microbatches = 4;
  LossSpec loss;
  /// Whether a step's gradients are divided by the number of micro-batches.
  bool divide_by_microbatches = true;
  std::vector<StepKind> steps = {StepKind::Train};
  OptimizerSpec optimizer = {};
};

/// "exact", "same-order", "bounded".
std::string_view to_string(Truth value);

}  // namespace plumbline
