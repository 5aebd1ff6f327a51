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
  Differs,    ///< a loss has another weight than it needs, or the gradients or buffers of this run differ
  Undecided,  ///< a loss or gradient was not shown to separate, but the gradients and buffers of this run agree
};

/// "same", "differs", "undecided".
std::string_view answer_name(StepAnswer answer);

/// The weight that a micro-batch's loss needs, and has, in the sum of the micro-batches' gradients.
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
  size_t values = 0;                   ///< the number of results of operators in all steps
  std::set<std::string> lemmas;        ///< the operators whose lemmas were used
  /// The relative difference in this run, in float64, between the gradients and final buffers of the whole batch and
  /// those of the micro-batches, whose gradients are summed as the engine weights them: the norm of the difference over
  /// the norm of the whole batch's.
  double difference = 0;
};

/// Proves every train step. Throws InputError, with the reason, for a case that has no step of a whole batch.
StepProof prove_same_step(const reference::Case& c, uint64_t seed);

}  // namespace plumbline::proof
