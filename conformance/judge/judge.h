// The judge compares a backend's results with the oracles, and the oracles with each other.
//
// Two oracles compute every case: the detached run executes the stages one by one, and the whole model runs under plain
// autograd. The detached run has every boundary value, so it shows where a difference begins. The whole model is never
// captured or cut, so it shows whether the detached run is right. Backends only deliver results; they never judge them.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/judge/verdict/finding.h"
#include "conformance/protocol/protocol.h"
#include "reference/case.h"
#include "runtime/io/tensor_file.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

struct Expectation;

/// Not thread-safe. Keeps the results of the oracles, so that a judge of many cases takes much memory.
class Judge {
 public:
  /// `device`: where the detached run computes; if that is not the CPU, it is compared with the whole model within
  /// bounds, not bit for bit. `of_device`: the backend computed its results on a device other than the CPU.
  explicit Judge(uint64_t seed, c10::Device device = c10::kCPU, bool of_device = false)
      : seed_(seed), device_(device), wide_bounds_(of_device || !device.is_cpu()) {}

  /// Judges the results of a case under one schedule, which determines the number of stages. `results` is keyed by
  /// result key. Only the kinds in `delivers` are compared, and these must be complete; empty: all kinds. The status is
  /// Error if the oracles disagree, Mistrusted if an exact case is not proven exact, if most of its gradients are zero
  /// or if a same-order case has a NaN (first_nan()), and Skipped if there is nothing to compare. Throws InputError for
  /// a name that is not a result key, and if the model cannot be cut.
  ///
  /// Results of the detached run are cached by case id, number of micro-batches and order of accumulation, those of the
  /// whole model by case id and number of micro-batches: calls with equal id and number must pass the same case.
  Finding judge(const reference::Case& c, const schedule::Schedule& schedule, const TensorMap& results,
                const std::vector<reference::ResultKind>& delivers = {});

  /// Why results of the case, cut into so many stages, cannot be judged by bounds; empty if they can. Throws InputError
  /// if the model cannot be cut.
  std::string why_unbounded(const reference::Case& c, int stages) const;

  /// The size in bytes of all expected results of a case under one schedule.
  uint64_t expected_bytes(const reference::Case& c, const schedule::Schedule& schedule);

 private:
  struct Oracle;
  struct Whole;
  Oracle& oracle_for(const reference::Case& c, const schedule::Schedule& schedule);
  Whole& whole_for(const reference::Case& c);
  const Expectation& bounded_for(const reference::Case& c, int samples);  ///< of at least so many samples
  const Expectation& stages_for(const reference::Case& c, Oracle& oracle);
  const TensorMap& by_microbatch_for(const reference::Case& c, int stages);

  uint64_t seed_;
  c10::Device device_;
  bool wide_bounds_;
  std::map<std::string, std::shared_ptr<Oracle>> oracles_;
  std::map<std::string, std::shared_ptr<Whole>> wholes_;
};

/// Demotes a same-order case to bounded truth unless the backend keeps the schedule's order and computes with the
/// version of LibTorch of this build (suffixes such as +cpu are ignored) on the CPU: otherwise real numbers
/// need not have the same bits. Returns whether the case was demoted; if so, the reason is appended to `note`,
/// otherwise `note` is unchanged.
bool demote(reference::Case& c, const BackendDescription& backend, std::string& note);

}  // namespace plumbline::conformance
