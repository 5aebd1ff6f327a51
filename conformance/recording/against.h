// Holds the recording of a pipelined run against the recording of the same script's run on one rank (recording.h), and
// names the first module, micro-batch and direction in which they differ.
//
// Values are aligned by (step, kind, micro-batch, name), whatever stage or rank made them, and taken in the order in
// which a wrong one can spoil others: step by step; in a step what goes forward (micro-batch by micro-batch, in the
// order in which the one rank's forward met the values), losses, what comes back (micro-batch by micro-batch, in the
// reverse order; what a micro-batch adds to a parameter's gradient is one of these values, at the parameter's module),
// then the gradients of the step (the accumulation), then buffers. Steps after the first that differs are not looked
// at: their parameters were already others.
//
// How far may a value be off? Not at all: bit for bit, with two exceptions, neither of which is a tolerance that
// somebody chose for the values at hand.
//  - The order of a sum. Where a parameter's contributions c_m of all M micro-batches agree bit for bit in both runs,
//  its
//    gradient may be their sum in any order, times the loss scale s before or after:
//        |run - one| <= 2 gamma(M+1) sum_m |s c_m|,   gamma(k) = k u / (1 - k u),   u the unit roundoff of the dtype
//    (M-1 additions and two scalings in each run; Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
//  - Perturbed runs. Recorder(perturb=K) repeats the one-rank run with every value that a watched module hands on, in
//  the
//    forward and in the backward, moved by one unit in the last place at random. From N >= 3 such runs, d_i being what
//    perturbed run i differs by from the unperturbed one, v its value, n the number of its elements:
//        element:  |run - one| <= 10 max(max_i |d_i|, u |v|, 1/2 sqrt(sum_i ||d_i||^2 / (N n)))
//        tensor:   ||run - one|| <= 10 max(sqrt(sum_i ||d_i||^2 / N), u ||v||)
//    The factors are those of reference/rounding.h and for its reasons: a handful of samples of one element may agree
//    by chance, while elements of one tensor come out of like computations. It is a second opinion, not a proof:
//    rounding inside a module is represented only by what its results are moved by. docs/recorder.md has the
//    calibration. These are used for whatever is not equal bit for bit; where there are no perturbed runs, nothing may
//    differ.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/judge/compare.h"
#include "conformance/recording/recording.h"

namespace plumbline::conformance {

struct AgainstVerdict {
  std::optional<Difference> first;        ///< the first value that differs; its stage is where the pipelined run had it
  int rank = -1;                          ///< that recorded it; -1 where the run has it not
  std::string direction;                  ///< "forward", "loss", "backward", "accumulation", "buffers"
  double norm_ratio = -1;                 ///< norm of the value in the run over the one expected; -1: does not apply
  std::string where;                      ///< one sentence: what went before it agrees, and where to look
  int64_t differing = 0;                  ///< values of that step
  int64_t equal = 0;                      ///< bit for bit, in all steps
  int64_t elements = 0;                   ///< of all values that were compared
  std::set<reference::ResultKind> kinds;  ///< of which some value was compared
  int64_t reordered = 0;                  ///< gradients that are the same sum in another order
  int64_t rounded = 0;                    ///< within what the perturbed runs allow
  double largest_ratio = 0;               ///< of those: the largest error over its bound
  std::string largest_name;
  int steps = 0;                   ///< looked at
  int perturbed_runs = 0;          ///< used
  std::vector<std::string> notes;  ///< what was left out, and why
  /// Parameters of the one-rank run that the pipelined run does not know: the comparison is incomplete.
  std::vector<std::string> unknown_parameters;

  bool agrees() const { return !first && unknown_parameters.empty() && compared() > 0; }
  int64_t compared() const { return equal + reordered + rounded + differing; }
};

/// InputError: recordings of different numbers of micro-batches, perturbed runs fewer than 3 or that do not fit.
AgainstVerdict hold_against(const Recording& run, const Recording& one, bool use_perturbed = true);

/// For people: "FIRST DIFFERENCE (backward): step 0, stage 1, micro-batch 3: ...", and lines that say where to look,
/// how many more differ, what was left out.
std::string report_text(const AgainstVerdict& verdict);

}  // namespace plumbline::conformance
