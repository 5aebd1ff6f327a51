// Computes a running error bound for every element of a float64 run: how far the same computation in a lower precision
// may differ.
//
// Monte Carlo arithmetic (Parker, "Monte Carlo Arithmetic: exploiting randomness in floating-point arithmetic", 1997;
// the older CESTAC method: Vignes 1974): run the computation several times, each time with every rounding replaced by
// a random relative error of the same size, and measure how far the results scatter. Here the runs are in float64 and
// an interposer below autograd injects the errors, so forward, backward and the accumulation into .grad are covered by
// the very operators that the real run calls; effects of the computation on rounding errors (amplification,
// cancellation) apply to the injected errors too.
// The error of one operator call (u = unit roundoff, xi uniform in [-1, 1]; rounding_ops.h has the table):
//  - moves, selections, sign changes, comparisons: none. 0 stays 0.
//  - one operation per element (add, mul, div): result * (1 + u xi).
//  - a sum of K products inside one kernel (mm, addmm, bmm, convolution and its backward, sum, mean): recursive
//    summation makes the error sum_k delta_k S_k with S_k the partial sums and |delta_k| <= u (Higham, Accuracy and
//    Stability of Numerical Algorithms, ch. 4). For terms t in random order E S_k^2 follows from sampling without
//    replacement, and with S = sum t, Q^2 = sum t^2:
//        E sum_{k=2..K} S_k^2 = (K+1)/3 (S^2 - Q^2) + ((K+1)/2 - 1/K) Q^2 = (K+1)/3 S^2 + ((K+1)/6 - 1/K) Q^2,
//    plus Q^2 for the rounding of the products. So the result gets u xi sqrt((K+1)/3 S^2 + ((K+1)/6 - 1/K + 1) Q^2).
//    Q^2 costs one more call: the operator is multilinear, so on squared arguments it gives the sum of squared terms.
//    Naive summation in one running sum is the worst usual order; blocked, pairwise or fused kernels err less.
//  - other kernels (exp, gelu, softmax, norms, attention, their backwards): arguments and results get errors of a few
//    u, times sqrt(K) if the kernel contains a reduction (whose partial results may be stored in a 16-bit format); if
//    the kernel subtracts nearly equal numbers, an error relative to the subtracted value is added (gelu's 1 + erf,
//    log_softmax, ...).
//  - complex numbers count as pairs of real ones; they may be added, multiplied and summed.
//  - a scalar factor that the format does not hold exactly (0.1): its own relative error, one for the whole call.
//
// Bound of an element: safety * max(largest deviation of its samples, u |value|, RMS deviation of the tensor * share).
// The last two are floors, because the samples of one element may agree by chance. (With 16 samples of a normal error
// the largest is below 1/3 sigma with probability 1e-10, but the errors are products and sums with heavy shoulders, and
// the first-order error of an element vanishes near a zero of the computation's derivative.) The elements of one tensor
// result from similar computations and have similar errors up to their scale, so a share of the tensor's RMS covers
// errors that the samples of one element cannot show. A result of pure data movement, without any error, has the bound
// safety * u * |value|.
//
// The relative-norm gate, rel_gate = c * rms over samples of |deviation|_2 / |value|_2, at least c u, is much sharper
// for an error that is spread over a tensor (a factor 1 + 1e-6); the elementwise bound is sharper for an error in few
// elements.
// Known limits:
//  - Discontinuities. If an input of relu, max, abs or a comparison is within rounding error of its kink, the real run
//    may take the other branch. Usually some sample takes it too and the bound grows to cover both; if none does, there
//    is a false alarm. Choose data of cases away from kinks.
//  - `run` must be deterministic: it seeds its own generators, starts from the same parameters, and works in float64
//    (float32 tensors are left unchanged). Parameters and inputs must be representable in the low precision: their
//    conversion is not modelled. Masks drawn in float64 and in float32 differ; pass them as inputs.
//  - It is a statistical estimate, not a proof. Adversarial orders (all positive terms before all negative) can err
//    sqrt(K) times more; overflow and underflow are not modelled; TF32 needs a separate model (unit_roundoff 2^-24
//    with accumulation_roundoff 2^-11).
//
// Calibration (rounding_calibration_test.cc repeats it): 100 seeds of each of three models, real runs in several orders
// (whole, 4 chunks, 8 chunks backwards; for batch norm the batch reversed), worst error / bound and
// worst norm / rel_gate; LibTorch 2.15, x86-64:
//     mlp with gelu, mse                        float32 0.22, 0.08    bfloat16 0.24, 0.15
//     layer norm, attention, cross entropy      float32 0.23, 0.12    bfloat16 0.25, 0.27
//     convolution, batch norm, gelu             float32 0.28, 0.21    bfloat16 0.16, 0.19
// No false alarm. The real errors are 0.2 to 0.6 (float32) and 0.4 to 0.9 (bfloat16) of the samples' standard deviation
// on average over a tensor, so the model errs on the safe side. The exception, 1.3, and the worst case above, is the
// gradient of a bias before batch norm, which is zero except for rounding (0.46, 0.50 with the sums of two threads).
// With relu instead of gelu and gates 2.5 times tighter, 3 of 100 bfloat16 seeds gave a false alarm: see the limits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "reference/models/parts/counter.h"
#include "runtime/capture/interpose.h"

namespace plumbline::reference {

struct RoundingModel {
  double unit_roundoff = 0x1p-24;          ///< u of a stored result: half the distance from 1 to the next number
  double accumulation_roundoff = 0x1p-24;  ///< u inside a kernel, where sums and functions may use a wider format
  uint64_t seed = 0;
};

/// The model of a run in `type`: float32, or a 16-bit format whose kernels compute in float32 and round their results
/// (float16 2^-11, bfloat16 2^-8). Throws InputError for other types.
RoundingModel rounding_model(at::ScalarType type, uint64_t seed = 0);

/// Injects random rounding errors into the float64 operator calls of the thread on which a capture::InterposerScope
/// installs it. The same model gives the same errors in the same sequence of calls.
class RoundingInterposer : public capture::Interposer {
 public:
  explicit RoundingInterposer(const RoundingModel& model);
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

 private:
  double xi() { return 2 * counter_.unit(drawn_++) - 1; }
  /// values *= 1 + relative * xi, element by element, in place.
  void disturb(const at::Tensor& values, double relative);
  /// values += half_width * xi, in place; shapes are equal.
  void disturb(const at::Tensor& values, const at::Tensor& half_width);
  at::Tensor disturbed(const at::Tensor& values, double relative);
  void disturb_scalars(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  void call_complex(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  void call_contraction(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  void call_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

  RoundingModel model_;
  models::Counter counter_;
  uint64_t drawn_ = 0;
};

using NamedResults = std::map<std::string, at::Tensor>;

struct BoundedResults {
  NamedResults value;  ///< the undisturbed float64 run, detached copies
  NamedResults bound;  ///< float64, same shapes: the largest expected absolute error of each element
  std::map<std::string, double> rel_gate;  ///< the largest expected |error|_2 / |value|_2; infinite if value is all
                                           ///< zero and its samples are not
};

/// How far a correct run may exceed the scatter of the samples: `safety` above. Calibrated as described there.
inline constexpr double kRoundingSafety = 10;

/// The samples of the calibration above.
inline constexpr int kRoundingSamples = 16;

/// Calls `run` once undisturbed and `samples` times (at least 1) with rounding errors, on this thread. Throws
/// InputError if `run` does not return the same names and shapes each time. Cost: `samples` runs, each about three
/// times a plain one.
BoundedResults running_error(const std::function<NamedResults()>& run, const RoundingModel& model,
                             int samples = kRoundingSamples);

}  // namespace plumbline::reference
