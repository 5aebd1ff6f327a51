// Compares the recording of a pipelined run with the recording of the same script's run on one rank (recording.h). The
// result names the first module, micro-batch and direction in which the two runs differ.
//
// Values are aligned by (step, kind, micro-batch, name), regardless of stage and rank. What a micro-batch adds to the
// gradient of a tied parameter, its contribution, is the sum over all copies, because the one-rank run has one copy. A
// value that a forward of the whole batch cut although its rows are none of the batch (step.h) is put together again.
// Values are compared in causal order, step by step. The order within a step:
//  - forward values, micro-batch by micro-batch, in the order of the one-rank run's forward;
//  - losses;
//  - backward values, micro-batch by micro-batch, in the reverse order, including the contributions of a micro-batch to
//    the gradients of parameters, at the parameter's module;
//  - the accumulated gradients of the step;
//  - buffers.
// The comparison ends with the first step that differs: the parameters of later steps differ anyway.
//
// Values must be equal bit for bit, with two exceptions, neither of which is a tolerance chosen for the given values.
//  - The order of a sum. If a parameter's contributions c_m of all M micro-batches agree bit for bit in both runs, its
//    gradient may be their sum in any order, multiplied by the loss scale s before or after:
//        |run - one| <= 2 gamma(M+1) sum_m |s c_m|,   gamma(k) = k u / (1 - k u),   u the unit roundoff of the dtype
//    (M-1 additions and two scalings in each run; Higham, Accuracy and Stability of Numerical Algorithms, 3.1). If the
//    parameter has K > 1 copies, a contribution may itself be the sum of those of the copies, c_mk, in any order, and
//    the gradient the sum of all:
//        |run - one| <= 2 gamma(K+1) sum_k |c_mk|,   |run - one| <= 2 gamma(K M + 1) sum_mk |s c_mk|
//  - Perturbed runs. Recorder(perturb=K) repeats the one-rank run and moves every value that a watched module passes
//    on, in the forward and in the backward, by one unit in the last place at random. There are N >= 3 such runs; v is
//    the unperturbed value with n elements, and d_i the difference of perturbed run i from v:
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
  int rank = -1;                          ///< the rank that recorded `first`; -1: missing in the pipelined run
  std::string direction;                  ///< of `first`: "forward", "loss", "backward", "accumulation", "buffers"
  double norm_ratio = -1;                 ///< of `first`: actual norm / expected norm; -1: does not apply
  std::string where;                      ///< one sentence: the preceding value that agrees, and where to look
  int64_t differing = 0;                  ///< number of values that differ in the step of `first`
  int64_t equal = 0;                      ///< number of values that are equal bit for bit, in all compared steps
  int64_t elements = 0;                   ///< number of elements of the values that both runs have
  std::set<reference::ResultKind> kinds;  ///< kinds of the values that both runs have
  int64_t reordered = 0;           ///< number of gradients and contributions that are the same sum in another order
  int64_t rounded = 0;             ///< number of other values within the bounds from the perturbed runs
  double largest_ratio = 0;        ///< among the `rounded` values: the largest error / bound
  std::string largest_name;        ///< result key of the value with `largest_ratio`
  int steps = 0;                   ///< number of compared steps
  int perturbed_runs = 0;          ///< number of perturbed runs that gave bounds; 0: none was needed
  std::vector<std::string> notes;  ///< one line each: which values were left out, and why
  /// Names of the parameters of the one-rank run that the pipelined run did not record: the comparison is incomplete.
  std::vector<std::string> unknown_parameters;

  /// Whether no value differs, every parameter was recorded, and at least one value was compared.
  bool agrees() const { return !first && unknown_parameters.empty() && compared() > 0; }
  int64_t compared() const { return equal + reordered + rounded + differing; }
};

/// Compares the pipelined recording `run` with the one-rank recording `one`, up to the last step that both have.
/// Perturbed runs of `one` give bounds if `use_perturbed`. Throws InputError for recordings with different numbers of
/// micro-batches, for files that read_step() refuses and, once a value needs bounds, for one or two perturbed runs or
/// for perturbed runs of another script or of other data.
AgainstVerdict hold_against(const Recording& run, const Recording& one, bool use_perturbed = true);

/// The verdict as text: "FIRST DIFFERENCE (backward): step 0, stage 1, micro-batch 3: ...", then lines that state where
/// to look, how many more values differ, and which values were left out.
std::string report_text(const AgainstVerdict& verdict);

}  // namespace plumbline::conformance
