// Compares the recording of a pipelined run with the recording of the same script's run on one rank (recording.h), and
// names the first module, micro-batch and direction in which they differ.
//
// Values are aligned by (step, kind, micro-batch, name), regardless of stage and rank, and compared in causal order,
// step by step. The order within a step:
//  - forward values, micro-batch by micro-batch, in the order of the one-rank run's forward;
//  - losses;
//  - backward values, micro-batch by micro-batch, in the reverse order; a micro-batch's contribution to a parameter's
//    gradient is one of them, at the parameter's module;
//  - the gradients of the step (the accumulation);
//  - buffers.
// The comparison ends with the first step that differs: the parameters of later steps differ anyway.
//
// Values must be equal bit for bit, with two exceptions, neither of which is a tolerance chosen for the given values.
//  - The order of a sum. If a parameter's contributions c_m of all M micro-batches agree bit for bit in both runs, its
//    gradient may be their sum in any order, multiplied by the loss scale s before or after:
//        |run - one| <= 2 gamma(M+1) sum_m |s c_m|,   gamma(k) = k u / (1 - k u),   u the unit roundoff of the dtype
//    (M-1 additions and two scalings in each run; Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
//  - Perturbed runs. Recorder(perturb=K) repeats the one-rank run and moves every value that a watched module passes
//    on, in the forward and in the backward, by one unit in the last place at random. With N >= 3 such runs, d_i the
//    difference of perturbed run i from the unperturbed one, v the unperturbed value, n the number of its elements:
//        element:  |run - one| <= 10 max(max_i |d_i|, u |v|, 1/2 sqrt(sum_i ||d_i||^2 / (N n)))
//        tensor:   ||run - one|| <= 10 max(sqrt(sum_i ||d_i||^2 / N), u ||v||)
//    The factors are those of reference/rounding/rounding.h, for the same reasons: a few samples of one element may
//    agree by chance, while the elements of one tensor come from similar computations. This is evidence, not a proof:
//    only the perturbation of a module's results represents the rounding inside it. docs/recorder.md has the
//    calibration. These bounds apply to values that are not equal bit for bit; without perturbed runs, no value may
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
  std::optional<Difference> first;        ///< the first value that differs, with its stage in the pipelined run
  int rank = -1;                          ///< that recorded it; -1: missing in the pipelined run
  std::string direction;                  ///< "forward", "loss", "backward", "accumulation", "buffers"
  double norm_ratio = -1;                 ///< actual norm over expected norm; -1: does not apply
  std::string where;                      ///< one sentence: the preceding value that agrees, and where to look
  int64_t differing = 0;                  ///< values of that step
  int64_t equal = 0;                      ///< bit for bit, in all steps
  int64_t elements = 0;                   ///< of all compared values
  std::set<reference::ResultKind> kinds;  ///< of all compared values
  int64_t reordered = 0;                  ///< gradients that are the same sum in another order
  int64_t rounded = 0;                    ///< within the bounds from the perturbed runs
  double largest_ratio = 0;               ///< of those: the largest error over its bound
  std::string largest_name;
  int steps = 0;                   ///< compared
  int perturbed_runs = 0;          ///< used
  std::vector<std::string> notes;  ///< the values that were left out, and why
  /// Parameters of the one-rank run that the pipelined run did not record: the comparison is incomplete.
  std::vector<std::string> unknown_parameters;

  bool agrees() const { return !first && unknown_parameters.empty() && compared() > 0; }
  int64_t compared() const { return equal + reordered + rounded + differing; }
};

/// Throws InputError for recordings with different numbers of micro-batches, for fewer than 3 perturbed runs, and for
/// perturbed runs that do not fit.
AgainstVerdict hold_against(const Recording& run, const Recording& one, bool use_perturbed = true);

/// The verdict as text: "FIRST DIFFERENCE (backward): step 0, stage 1, micro-batch 3: ...", then lines on where to
/// look,
/// how many more values differ, and which were left out.
std::string report_text(const AgainstVerdict& verdict);

}  // namespace plumbline::conformance
