#include "conformance/judge/judge.h"

#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "conformance/corpus/case_pipe.h"
#include "conformance/judge/compare.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/likeness.h"
#include "conformance/judge/stage_orders.h"
#include "reference/host_results.h"
#include "reference/models/parts/names.h"
#include "reference/oracle/detached_run.h"
#include "reference/oracle/whole_model.h"
#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

/// Gradients with a larger fraction of zeros prove too little: most wrong results would look the same.
constexpr double kMostZeros = 0.75;

/// The samples of the bounds that hold one oracle against another, tried in turn. Few samples make narrower bounds than
/// the calibrated number (reference/rounding/rounding.h), at a small part of their cost. Only the latter find a
/// problem.
constexpr std::array kSamplesInTurn = {1, 4, reference::kRoundingSamples};

/// Whether every stage has one copy that executes its micro-batches in ascending order.
bool all_ascending(const reference::StageOrders& orders, std::vector<int> reference::StageOrder::* order) {
  return std::all_of(orders.begin(), orders.end(), [&](const std::vector<reference::StageOrder>& copies) {
    return copies.size() == 1 && std::is_sorted((copies.front().*order).begin(), (copies.front().*order).end());
  });
}

std::string text_of(const reference::StageOrders& orders) {
  std::string text;
  for (const std::vector<reference::StageOrder>& copies : orders) {
    text += ";";
    for (const reference::StageOrder& copy : copies) {
      text += "|";
      for (int microbatch : copy.forwards) text += "F" + std::to_string(microbatch);
      for (int microbatch : copy.backwards) text += "B" + std::to_string(microbatch);
    }
  }
  return text;
}

template <typename Kinds = std::initializer_list<reference::ResultKind>>
TensorMap of_kinds(const TensorMap& all, const Kinds& kinds) {
  TensorMap kept;
  for (const auto& [key, tensor] : all)
    if (std::find(kinds.begin(), kinds.end(), reference::parse_result_key(key).kind) != kinds.end())
      kept.emplace(key, tensor);
  return kept;
}

constexpr std::initializer_list<reference::ResultKind> kFinal = {
    reference::ResultKind::Grad, reference::ResultKind::GradNorm, reference::ResultKind::Buffer,
    reference::ResultKind::Param, reference::ResultKind::OptimizerState};
constexpr std::initializer_list<reference::ResultKind> kByMicrobatch = {
    reference::ResultKind::Output, reference::ResultKind::Loss, reference::ResultKind::InputGrad};
constexpr std::initializer_list<reference::ResultKind> kWhole = {
    reference::ResultKind::Output, reference::ResultKind::Loss,          reference::ResultKind::InputGrad,
    reference::ResultKind::Grad,   reference::ResultKind::GradNorm,      reference::ResultKind::Buffer,
    reference::ResultKind::Param,  reference::ResultKind::OptimizerState};

/// The kinds of results that only the detached stages have. They say where a value first left its bound.
constexpr std::initializer_list<reference::ResultKind> kBetweenStages = {
    reference::ResultKind::Forward, reference::ResultKind::Backward, reference::ResultKind::Partial};

/// What an unexpected result probably should have been. "0/loss/-/0/loss is missing": the missing key of its kind and
/// name; or that the case has no results of its kind. Empty without either.
std::string missing_instead(const reference::ResultKey& unexpected, const Compared& compared) {
  const auto is_of_kind = [&](const auto& item) {
    return reference::parse_result_key(item.first).kind == unexpected.kind;
  };
  // Bounds exist for some kinds only.
  if (compared.mode != CompareMode::Bounded && std::ranges::none_of(compared.expected, is_of_kind))
    return "the case has no results of kind " + std::string(reference::kind_name(unexpected.kind));
  std::vector<reference::ResultKey> missing;
  for (const auto& [text, tensor] : compared.expected)
    if (const reference::ResultKey key = reference::parse_result_key(text);
        key.kind == unexpected.kind && key.name == unexpected.name && !compared.actual.contains(text))
      missing.push_back(key);
  if (missing.empty()) return "";
  const auto distance = [&](const reference::ResultKey& key) {
    return std::tuple(key.step != unexpected.step, key.microbatch != unexpected.microbatch,
                      key.stage != unexpected.stage);
  };
  std::ranges::sort(missing, reference::causal_less);
  return to_string(*std::ranges::min_element(missing, {}, distance)) + " is missing";
}

bool is_of_values(const Difference& d) { return d.what == DifferenceKind::Value || d.what == DifferenceKind::Norm; }

/// Adds what the numbers do not say: the stages of a parameter, and what a wrong value is instead.
void explain(Finding& finding, const Compared& compared, const std::map<std::string, std::vector<int>>& stages,
             int microbatches) {
  for (Difference& d : finding.all) {
    const bool of_parameter = d.key.kind == reference::ResultKind::Grad || d.key.kind == reference::ResultKind::Param;
    if (const auto of = stages.find(d.key.name); of_parameter && of != stages.end()) d.stages = of->second;
    if (is_of_values(d)) d.likeness = likeness(d.key, compared, microbatches);
    if (d.what == DifferenceKind::Unexpected) d.likeness = missing_instead(d.key, compared);
  }
  finding.first = finding.all.front();
  finding.pattern = gradient_pattern(compared, stages, microbatches);
}

void scale_f64(HostTensor& tensor, double factor) {
  for (size_t at = 0; at + sizeof(double) <= tensor.data.size(); at += sizeof(double)) {
    double value = 0;
    std::memcpy(&value, tensor.data.data() + at, sizeof value);
    value *= factor;
    std::memcpy(tensor.data.data() + at, &value, sizeof value);
  }
}

/// Bounds and gates are calibrated for the kernels of a CPU. Those of a device may evaluate functions such as tanh less
/// exactly: cuDNN's LSTM, on an H200, reaches 1.31 times its bound.
Expectation for_kernels(bool of_device, Expectation expectation) {
  constexpr double kWider = 4;
  if (!of_device) return expectation;
  for (auto& [key, bound] : expectation.bounds.elements) scale_f64(bound, kWider);
  for (auto& [key, gate] : expectation.bounds.norms) gate.limit *= kWider;
  return expectation;
}

bool is_finite(const HostTensor& tensor) {
  for (int64_t i = 0; i < element_count(tensor); ++i)
    if (!std::isfinite(element_as_double(tensor, i))) return false;
  return true;
}

std::string first_of(const std::vector<Difference>& differences) {
  return differences.empty() ? "" : sentence(differences.front());
}

}  // namespace

struct Judge::Oracle {
  reference::StageOrders orders;
  TensorMap detached;
  std::optional<Expectation> stages;  ///< the detached stages' bounded results; computed on first use
  /// The whole model, whose micro-batches ascend, has other buffers: bounded truth is the detached stages'.
  bool has_other_buffers = false;
  /// Why the oracles cannot be trusted for this case; empty if they agree.
  std::string problem;
  /// A limit of the comparison, for the finding; mostly empty.
  std::string note;
};

/// The results of the whole model, which do not depend on the schedule's order; computed on first use.
struct Judge::Whole {
  std::string exactness_problem;
  TensorMap at_once;
  std::map<int, TensorMap> by_microbatch;  ///< by the number of stages, which seeds the random layers
  Expectation bounded;
  int samples = 0;  ///< of `bounded`; 0: not computed
  bool has_exact = false;
};

Judge::Whole& Judge::whole_for(const reference::Case& c) {
  const std::string key = c.id + " " + std::to_string(c.microbatches) + " " + std::string(to_string(c.truth));
  std::shared_ptr<Whole>& whole = wholes_[key];
  if (!whole) whole = std::make_shared<Whole>();
  if (c.truth == reference::Truth::Exact && !whole->has_exact) {
    whole->exactness_problem = exactness_problem(c, seed_);
    reference::WholeModelOptions at_once;
    at_once.by_microbatch = false;
    whole->at_once = of_kinds(reference::to_host(reference::run_whole_model(c, seed_, at_once)), kFinal);
    whole->has_exact = true;
  }
  return *whole;
}

const Expectation& Judge::bounded_for(const reference::Case& c, int samples) {
  Whole& whole = whole_for(c);
  if (whole.samples < samples) whole.bounded = for_kernels(wide_bounds_, bounded_expectation(c, seed_, samples));
  whole.samples = std::max(whole.samples, samples);
  return whole.bounded;
}

const TensorMap& Judge::by_microbatch_for(const reference::Case& c, int stages) {
  Whole& whole = whole_for(c);
  const auto [it, is_new] = whole.by_microbatch.try_emplace(stages);
  reference::WholeModelOptions options;
  options.stages = stages;
  if (is_new) it->second = reference::to_host(reference::run_whole_model(c, seed_, options));
  return it->second;
}

const Expectation& Judge::stages_for(const reference::Case& c, Oracle& oracle) {
  if (!oracle.stages) oracle.stages = for_kernels(wide_bounds_, bounded_stages(c, seed_, oracle.orders));
  return *oracle.stages;
}

Judge::Oracle& Judge::oracle_for(const reference::Case& c, const schedule::Schedule& schedule) {
  const reference::StageOrders orders = stage_orders(schedule);
  const std::string key = c.id + " " + std::to_string(c.microbatches) + text_of(orders);
  if (const auto it = oracles_.find(key); it != oracles_.end()) return *it->second;

  auto oracle = std::make_shared<Oracle>();
  oracle->orders = orders;
  oracle->detached = reference::to_host(reference::run_detached(c, seed_, orders, {}, device_));
  const auto disagree = [&](const char* what, const std::string& difference) {
    if (!difference.empty() && oracle->problem.empty())
      oracle->problem = std::string("the oracles disagree (") + what + "): " + difference;
  };
  const auto hold = [&](const char* what, const TensorMap& expected, std::initializer_list<reference::ResultKind> kinds,
                        CompareMode mode) {
    disagree(what, first_of(compare(of_kinds(expected, kinds), of_kinds(oracle->detached, kinds), mode)));
  };
  const auto hold_to_bounds = [&] {
    std::string difference;
    for (const int samples : kSamplesInTurn) {
      // Those of a bounded case are needed anyway.
      if (c.truth == reference::Truth::Bounded && samples < reference::kRoundingSamples) continue;
      const Expectation& expected = bounded_for(c, samples);
      difference = first_of(compare(of_kinds(expected.value, kWhole), of_kinds(oracle->detached, kWhole),
                                    CompareMode::Bounded, expected.bounds));
      if (difference.empty()) break;
    }
    disagree("float64 whole model", difference);
  };
  constexpr auto kOtherBuffers =
      "compared with the detached stages only: the whole model executes micro-batches in ascending order, and its "
      "buffers depend on that";
  if (c.truth != reference::Truth::Exact && !all_ascending(orders, &reference::StageOrder::forwards))
    oracle->has_other_buffers = case_traits(c, schedule.stages, seed_).has_buffers;
  switch (c.truth) {
    case reference::Truth::Exact:
      hold("whole model, whole batch", whole_for(c).at_once, kFinal, CompareMode::Numeric);
      hold("whole model", by_microbatch_for(c, 1), kByMicrobatch, CompareMode::Numeric);
      break;
    case reference::Truth::SameOrder: {
      const CaseTraits traits = case_traits(c, schedule.stages, seed_);
      if (oracle->has_other_buffers) {
        oracle->note = kOtherBuffers;
      } else if (device_.is_cpu() && !traits.shares_parameters && !traits.groups_sums &&
                 all_ascending(orders, &reference::StageOrder::backwards)) {
        hold("whole model", by_microbatch_for(c, traits.draws_random_numbers ? schedule.stages : 1), kWhole,
             CompareMode::Bitwise);
      } else if (const std::string why = why_unbounded(c, schedule.stages); !why.empty()) {
        oracle->note = "compared with the detached stages only: " + why;
      } else {
        // The whole model adds in another order than parameter copies, than a value's uses in several stages, than
        // micro-batches out of ascending order, and than another device's kernels. It agrees within its bound.
        hold_to_bounds();
      }
      break;
    }
    case reference::Truth::Bounded:
      if (oracle->has_other_buffers)
        oracle->note = kOtherBuffers;
      else
        hold_to_bounds();
      break;
  }
  return *oracles_.emplace(key, std::move(oracle)).first->second;
}

std::string Judge::why_unbounded(const reference::Case& c, int stages) const {
  if (c.dtype == reference::Dtype::F64) return "float64 results have no more exact reference to bound them";
  if (models::is_exact_model(c.model))
    return "whole numbers may lie at the kink of a function, where rounding changes a gradient by its whole size";
  const CaseTraits traits = case_traits(c, stages, seed_);
  if (traits.runs_under_autocast) return "bounds are those of float64, which autocast does not lower";
  if (traits.draws_random_numbers) return "with random layers the whole model in float64 draws other masks";
  return "";
}

uint64_t Judge::expected_bytes(const reference::Case& c, const schedule::Schedule& schedule) {
  uint64_t bytes = 0;
  for (const auto& [key, tensor] : oracle_for(c, schedule).detached) bytes += tensor.data.size();
  return bytes;
}

Finding Judge::judge(const reference::Case& c, const schedule::Schedule& schedule, const TensorMap& all,
                     const std::vector<reference::ResultKind>& delivers) {
  const auto delivered = [&](const TensorMap& map) { return delivers.empty() ? map : of_kinds(map, delivers); };
  const TensorMap results = delivered(all);
  Finding finding;
  finding.truth = c.truth;
  if (c.truth == reference::Truth::Exact && !whole_for(c).exactness_problem.empty()) {
    finding.status = Status::Mistrusted;
    finding.reason = "not compared: it is not proven exact: " + whole_for(c).exactness_problem;
    return finding;
  }
  Oracle& oracle = oracle_for(c, schedule);
  if (!oracle.problem.empty()) {
    finding.status = Status::Error;
    finding.reason = oracle.problem;
    return finding;
  }
  CompareMode mode = c.truth == reference::Truth::Exact ? CompareMode::Numeric : CompareMode::Bitwise;
  Expectation expected{delivered(oracle.detached), {}};
  TensorMap checked = results;
  std::vector<Difference> differences = compare(expected.value, results, mode);
  if (c.truth == reference::Truth::Bounded) {
    // Outputs, losses, gradients, buffers and parameters have bounds, which judge their values. The other results must
    // only exist, with the right dtype and shape, but counts of calls do not round. If a value is out of bounds, the
    // bounds of the values between stages show where it began.
    std::erase_if(differences, [](const Difference& d) {
      return is_of_values(d) && d.key.kind != reference::ResultKind::HookCalls;
    });
    mode = CompareMode::Bounded;
    const Expectation& whole =
        oracle.has_other_buffers ? stages_for(c, oracle) : bounded_for(c, reference::kRoundingSamples);
    expected = {delivered(of_kinds(whole.value, kWhole)), whole.bounds};
    checked = of_kinds(results, kWhole);
    finding.bound_use = bound_use(whole.value, checked, whole.bounds);
    std::vector<Difference> outside = compare(expected.value, checked, mode, expected.bounds);
    if (!outside.empty()) {
      const Expectation& between = stages_for(c, oracle);
      TensorMap bounded = delivered(of_kinds(between.value, kBetweenStages));
      // Of an infinity that a mask has, or of NaN, no bound says whether it is right.
      std::erase_if(bounded, [](const auto& item) { return !is_finite(item.second); });
      expected.value.merge(bounded);
      expected.bounds.elements.insert(between.bounds.elements.begin(), between.bounds.elements.end());
      expected.bounds.norms.insert(between.bounds.norms.begin(), between.bounds.norms.end());
      TensorMap compared = checked;
      compared.merge(of_kinds(results, kBetweenStages));
      outside = compare(expected.value, compared, mode, expected.bounds);
    }
    std::ranges::copy_if(outside, std::back_inserter(differences), is_of_values);
    std::ranges::sort(differences, reference::causal_less, &Difference::key);
  }
  std::set<std::string> kinds;
  for (const auto& [key, tensor] : checked) {
    kinds.insert(std::string(reference::kind_name(reference::parse_result_key(key).kind)));
    finding.elements += element_count(tensor);
  }
  finding.tensors = static_cast<int64_t>(checked.size());
  finding.checked.assign(kinds.begin(), kinds.end());
  set_differences(finding, differences);
  if (!differences.empty())
    explain(finding, {expected.value, results, mode, expected.bounds}, stages_of_parameters(oracle.detached),
            c.microbatches);
  finding.reason = oracle.note;
  if (finding.status == Status::Pass && checked.empty()) {
    finding.status = Status::Skipped;
    finding.reason = "nothing to compare: the case has no values of the kinds that the backend delivers";
  }
  if (finding.status == Status::Pass && c.truth == reference::Truth::Exact && zero_fraction(results) > kMostZeros) {
    finding.status = Status::Mistrusted;
    finding.reason = "agrees, but " + std::to_string(static_cast<int>(100 * zero_fraction(results))) +
                     " % of all gradients are zero";
  }
  if (finding.status == Status::Pass && mode == CompareMode::Bitwise)
    if (const std::string key = first_nan(expected.value); !key.empty()) {
      finding.status = Status::Mistrusted;
      finding.reason = "agrees, but " + key + " is not a number: most faults leave a NaN what it is";
    }
  return finding;
}

bool demote(reference::Case& c, const BackendDescription& backend, std::string& note) {
  if (c.truth != reference::Truth::SameOrder) return false;
  std::string why;
  if (!backend.follows_order)
    why = "the backend does not keep the schedule's order";
  else if (backend.libtorch.empty())
    why = "the backend does not compute with LibTorch";
  else if (backend.libtorch.substr(0, backend.libtorch.find('+')) != TORCH_VERSION)
    why = "the backend has LibTorch " + backend.libtorch + ", the oracle " TORCH_VERSION;
  else if (backend.device != BackendDescription().device)
    why = "the backend computes on " + backend.device + ", the oracle on " + BackendDescription().device;
  if (why.empty()) return false;
  c.truth = reference::Truth::Bounded;
  note += (note.empty() ? "judged as bounded: " : ", and then as bounded: ") + why;
  return true;
}

}  // namespace plumbline::conformance
