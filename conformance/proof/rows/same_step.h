// prove_same_step(): is the step of a case, micro-batch by micro-batch, the step of the whole batch? (docs/proof.md)
//
// The claim is about the unsplit model, so it knows no schedule: prove() (conformance/proof/prove.h) shows that the
// pipelined run computes what the unsplit model computes for each micro-batch.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/proof/sums/rational.h"
#include "reference/case.h"

namespace plumbline::proof {

enum class StepAnswer {
  Same,       ///< equal over the real numbers, for all contents of inputs and parameters
  Differs,    ///< a loss or gradient is not separable, and the gradients of this run differ
  Undecided,  ///< a loss or gradient was not shown to separate, but the gradients of this run agree
};

/// "same", "differs", "undecided".
std::string_view answer_name(StepAnswer answer);

/// By how much a micro-batch's loss must count, and does: the gradients of all micro-batches add up.
struct LossWeight {
  std::string loss;
  int microbatch = 0;
  Rational needed, used;
};

struct StepProof {
  StepAnswer answer = StepAnswer::Same;
  std::string why;                     ///< one line; empty if the same
  std::string op, module;              ///< that is to blame, if an operator is
  std::vector<LossWeight> weights;     ///< of the first train step, or of the first that is not the same
  std::vector<std::string> gradients;  ///< the parameters whose gradients separate
  size_t values = 0;                   ///< of all steps, that have a type
  std::set<std::string> lemmas;        ///< the operators whose lemmas were used
  /// In this run, in float64: how far the gradients of the whole batch, and the buffers after it, are from the sum of
  /// the gradients of the micro-batches, as the engine weights them, and from the buffers after all of them. The norm
  /// of the difference over the norm of the former.
  double difference = 0;
};

/// Proves every train step. Throws InputError, with the reason, for a case that has no step of a whole batch.
StepProof prove_same_step(const reference::Case& c, uint64_t seed);

}  // namespace plumbline::proof
