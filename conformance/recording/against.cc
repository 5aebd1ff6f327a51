#include "conformance/recording/against.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "conformance/recording/against_parts.h"
#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

constexpr size_t kFewestPerturbed = 3;

/// Aligns the values of a step, and collects the names that only one of the runs recorded.
class Aligner {
 public:
  Aligner(const Recording& run, const Recording& one, AgainstVerdict& verdict) : one_(one), verdict_(verdict) {
    run_names_.insert(run.order.begin(), run.order.end());
    run_names_.insert(run.parameters.begin(), run.parameters.end());
    one_names_.insert(one.order.begin(), one.order.end());
    one_names_.insert(one.parameters.begin(), one.parameters.end());
  }

  /// Every value that must be equal, in no order.
  std::vector<AlignedValue> align(const Step& actual, const Step& expected);
  /// Adds the names that align() left out to the verdict's notes.
  void add_notes();

 private:
  bool may_be_missing(const ValueKey& key, const RecordedStep& actual);
  bool may_be_extra(const ValueKey& key, const RecordedStep& expected);

  const Recording& one_;
  AgainstVerdict& verdict_;
  std::set<std::string> run_names_, one_names_;
  std::set<std::string> only_one_, only_run_, divided_, contributions_, only_run_gradients_;
  bool losses_left_out_ = false;
};

/// Whether a step has a value of this kind, and of this name unless it is empty; `per_microbatch`: of a micro-batch.
bool has_any(const RecordedStep& step, reference::ResultKind kind, const std::string& name, bool per_microbatch) {
  return std::any_of(step.begin(), step.end(), [&](const auto& item) {
    const ValueKey& key = item.first;
    return key.kind == kind && (name.empty() || key.name == name) && (key.microbatch >= 0) == per_microbatch;
  });
}

bool Aligner::may_be_missing(const ValueKey& key, const RecordedStep& actual) {
  if (key.kind == reference::ResultKind::Loss) {
    if (has_any(actual, reference::ResultKind::Loss, "", key.microbatch >= 0)) return false;
    losses_left_out_ = true;
    return true;
  }
  if (is_contribution(key)) {
    if (has_any(actual, reference::ResultKind::Backward, key.name, true)) return false;
    contributions_.insert(key.name);
    return true;
  }
  if (key.kind == reference::ResultKind::Buffer ? has_any(actual, reference::ResultKind::Buffer, key.name, false)
                                                : run_names_.contains(key.name))
    return false;
  only_one_.insert(key.name);
  return true;
}

bool Aligner::may_be_extra(const ValueKey& key, const RecordedStep& expected) {
  if (key.kind == reference::ResultKind::Loss) {
    if (has_any(expected, reference::ResultKind::Loss, "", key.microbatch >= 0)) return false;
    losses_left_out_ = true;
    return true;
  }
  if (key.kind == reference::ResultKind::Backward) {
    (is_event(key.name) ? only_run_gradients_ : contributions_).insert(key.name);
    return true;
  }
  if (key.kind != reference::ResultKind::Buffer && one_names_.contains(key.name)) return false;
  only_run_.insert(key.name);
  return true;
}

/// The summands of a contribution that both runs have: of the run that has more copies.
std::vector<const HostTensor*> summands_of(const AlignedValue& value, const Step& actual, const Step& expected) {
  std::vector<const HostTensor*> summands;
  for (const Step* step : {&actual, &expected}) {
    const auto found = step->summands.find(value.key);
    if (found == step->summands.end() || found->second.size() <= summands.size()) continue;
    summands.clear();
    for (const HostTensor& summand : found->second) summands.push_back(&summand);
  }
  if (summands.empty()) summands.push_back(value.expected);
  return summands;
}

std::vector<AlignedValue> Aligner::align(const Step& actual, const Step& expected) {
  std::vector<AlignedValue> values;
  for (const auto& [key, copies] : expected.values) {
    const auto found = actual.values.find(key);
    if (found == actual.values.end()) {
      if (!may_be_missing(key, actual.values)) values.push_back({.key = key, .expected = &copies.front().tensor});
      continue;
    }
    if (is_event(key.name) && found->second.size() > 1) {
      divided_.insert(module_of(key.name));  // a container that the pipeline cuts: each part is another module
      continue;
    }
    for (const RecordedCopy& copy : found->second) {
      values.push_back({.key = key,
                        .parameter = first_name(one_.tied, key.name),
                        .stage = copy.stage,
                        .rank = copy.rank,
                        .expected = &copies.front().tensor,
                        .actual = &copy.tensor});
      if (is_contribution(key)) values.back().summands = summands_of(values.back(), actual, expected);
    }
  }
  for (const auto& [key, copies] : actual.values)
    if (!expected.values.contains(key) && !may_be_extra(key, expected.values))
      values.push_back(
          {.key = key, .stage = copies.front().stage, .rank = copies.front().rank, .actual = &copies.front().tensor});
  return values;
}

std::string few(const std::set<std::string>& names) {
  std::string text;
  size_t listed = 0;
  for (const std::string& name : names) {
    if (listed++ == 3) return text + ", ... (" + std::to_string(names.size()) + ")";
    text += (text.empty() ? "`" : ", `") + name + "`";
  }
  return text;
}

void Aligner::add_notes() {
  auto& notes = verdict_.notes;
  for (const std::string& name : one_.parameters)
    if (!run_names_.contains(name)) verdict_.unknown_parameters.push_back(name);
  if (!only_one_.empty()) notes.push_back("only the one-rank run recorded " + few(only_one_));
  if (!only_run_.empty()) notes.push_back("only the pipelined run recorded " + few(only_run_));
  if (!divided_.empty())
    notes.push_back("modules split over several stages, not compared as a whole: " + few(divided_));
  if (!contributions_.empty())
    notes.push_back("contributions of single micro-batches were recorded by one run only for " + few(contributions_));
  if (!only_run_gradients_.empty())
    notes.push_back("gradients recorded in the pipelined run but not in the one-rank run: " + few(only_run_gradients_));
  if (losses_left_out_) notes.push_back("losses were recorded by one run only, or for micro-batches by one run only");
}

Difference difference_of(const AlignedValue& value, int step) {
  const std::string key =
      to_string(reference::ResultKey{step, value.key.kind, value.stage, value.key.microbatch, value.key.name});
  TensorMap expected, actual;
  if (value.expected) expected[key] = *value.expected;
  if (value.actual) actual[key] = *value.actual;
  return compare(expected, actual, CompareMode::Bitwise).front();
}

/// Clears `differs` of sums that differ only in their order.
void allow_orders(std::vector<AlignedValue>& values, const Recording& one, AgainstVerdict& verdict) {
  std::map<std::string, std::vector<const AlignedValue*>> contributions;
  for (AlignedValue& value : values) {
    if (!is_contribution(value.key)) continue;
    contributions[value.key.name].push_back(&value);
    if (!value.differs || value.summands.size() < 2 || !comparable(value) || !same_sum(value, value.summands, 1))
      continue;
    value.differs = false;
    ++verdict.reordered;
  }
  for (AlignedValue& value : values) {
    if (!value.differs || value.key.kind != reference::ResultKind::Grad || !comparable(value)) continue;
    const auto& parts = contributions[value.parameter];
    std::set<int> microbatches;
    std::vector<const HostTensor*> summands;
    bool equal = true;
    for (const AlignedValue* part : parts) {
      microbatches.insert(part->key.microbatch);
      equal = equal && !part->differs && part->expected->shape == value.expected->shape;
      summands.insert(summands.end(), part->summands.begin(), part->summands.end());
    }
    if (!equal || static_cast<int>(microbatches.size()) != one.microbatches ||
        static_cast<int>(parts.size()) != one.microbatches)
      continue;
    value.contributions_equal = true;
    if (!same_sum(value, summands, one.loss_scale)) continue;
    value.differs = false;
    ++verdict.reordered;
  }
}

[[noreturn]] void refuse_perturbed(const Recording& perturbed, const Recording& one, const std::string& where) {
  throw InputError(perturbed.folder.string() + ": does not fit " + one.folder.string() + " at `" + where +
                   "`; a perturbed run is the same script with another `perturb`");
}

/// Throws InputError if a perturbed run was not recorded as `one` was: it is left from an earlier script, for example.
void expect_same_script(const Recording& perturbed, const Recording& one) {
  if (!perturbed.is_perturbed) refuse_perturbed(perturbed, one, "perturb");
  if (perturbed.ranks() != one.ranks()) refuse_perturbed(perturbed, one, "ranks");
  if (perturbed.microbatches != one.microbatches) refuse_perturbed(perturbed, one, "microbatches");
  if (perturbed.whole_batch != one.whole_batch) refuse_perturbed(perturbed, one, "whole_batch");
  if (perturbed.loss_scale != one.loss_scale) refuse_perturbed(perturbed, one, "loss_scale");
  if (perturbed.parameters != one.parameters) refuse_perturbed(perturbed, one, "parameters");
}

constexpr std::string_view kLosses = "losses", kGradients = "gradients";

/// What values of this kind are called together. The size of one such group says nothing of that of another.
std::string_view group_of(const ValueKey& key) {
  switch (direction_of(key.kind)) {
    case Direction::Forward:
      return is_event(key.name) ? "forward values" : "parameters";
    case Direction::Loss:
      return kLosses;
    case Direction::Backward:
      return is_event(key.name) ? "backward values" : "contributions to gradients";
    case Direction::Accumulation:
      return kGradients;
    case Direction::Buffers:
      return "buffers";
  }
  return {};
}

/// Throws InputError if a perturbed run is of other data: the step's values of one group, taken together, have moved by
/// more than this share of their norm. One unit in the last place of what modules pass on moves them by far less.
void expect_same_data(const std::vector<AlignedValue>& values, const RecordedStep& samples, const std::string& folder) {
  constexpr double kFar = 0.25;
  constexpr int64_t kMostRead = 4096;  // elements of a tensor; enough to tell other data
  struct Squares {
    double moved = 0, all = 0;
  };
  std::map<std::string_view, Squares> groups;
  for (const AlignedValue& value : values) {
    const auto found = samples.find(value.key);
    if (value.expected == nullptr || found == samples.end() || !is_floating(value.expected->dtype)) continue;
    const HostTensor& sample = found->second.front().tensor;
    if (sample.dtype != value.expected->dtype || sample.shape != value.expected->shape) continue;
    Squares& squares = groups[group_of(value.key)];
    const int64_t stride = 1 + element_count(sample) / kMostRead;
    for (int64_t i = 0; i < element_count(sample); i += stride) {
      const double was = element_as_double(*value.expected, i), is = element_as_double(sample, i);
      if (!std::isfinite(was)) continue;  // of a mask, for one
      squares.moved += (is - was) * (is - was);
      squares.all += was * was;
    }
  }
  // A loss is a few numbers that may nearly cancel, and other targets show in the gradients as well.
  if (groups.contains(kGradients)) groups.erase(kLosses);
  for (const auto& [group, squares] : groups)
    if (std::isfinite(squares.all) && !(squares.moved <= kFar * kFar * squares.all))
      throw InputError(folder + ": its " + std::string(group) +
                       " are not near those of the unperturbed run; a perturbed run is the same script on the same "
                       "data with another `perturb`");
}

/// A step of the one-rank run, or of a perturbed one, in the form of the pipelined run's.
Step step_like(const Step& actual, const Recording& recording, int step) {
  Step expected = add_up_copies(read_step(recording, step), recording.tied);
  if (recording.whole_batch) join_uncut(expected.values, actual.values);
  return expected;
}

/// Clears `differs` of values within the bounds from the perturbed runs.
void allow_rounding(std::vector<AlignedValue>& values, const Step& actual, const Recording& one, int step,
                    AgainstVerdict& verdict) {
  std::vector<std::pair<AlignedValue*, Scatter>> open;
  for (AlignedValue& value : values)
    if (value.differs && comparable(value)) open.emplace_back(&value, Scatter(*value.expected));
  if (open.empty()) return;
  if (one.perturbed.size() < kFewestPerturbed)
    throw InputError(one.folder.string() + ": " + std::to_string(one.perturbed.size()) +
                     " perturbed runs; at least 3 are needed to bound the rounding");
  for (const auto& folder : one.perturbed) {
    const Recording perturbed = read_recording(folder);
    expect_same_script(perturbed, one);
    if (step >= perturbed.steps())
      throw InputError(folder.string() + ": step " + std::to_string(step) + " is missing; " + one.folder.string() +
                       " has it");
    const RecordedStep samples = step_like(actual, perturbed, step).values;
    expect_same_data(values, samples, folder.string());
    for (auto& [value, scatter] : open) {
      const auto found = samples.find(value->key);
      if (found == samples.end() || !scatter.add(found->second.front().tensor))
        refuse_perturbed(perturbed, one, value->key.name);
    }
  }
  verdict.perturbed_runs = static_cast<int>(one.perturbed.size());
  for (auto& [value, scatter] : open) {
    const std::string key =
        to_string(reference::ResultKey{step, value->key.kind, value->stage, value->key.microbatch, value->key.name});
    const BoundedValue bounded = scatter.bounded(key);
    const auto differences =
        compare({{key, bounded.expected}}, {{key, *value->actual}}, CompareMode::Bounded, bounded.bounds);
    if (!differences.empty()) {
      value->out_of_bounds = differences.front();
      continue;
    }
    value->differs = false;
    ++verdict.rounded;
    const double ratio = bounded.largest_ratio(*value->actual);
    if (ratio >= verdict.largest_ratio) {
      verdict.largest_ratio = ratio;
      verdict.largest_name = key;
    }
  }
}

/// A value's position in causal order.
auto causal_place(const ValueKey& key, const std::map<std::string, int>& positions) {
  const auto found = positions.find(key.name);
  const int position = found == positions.end() ? static_cast<int>(positions.size()) : found->second;
  const bool back = key.kind == reference::ResultKind::Backward || key.kind == reference::ResultKind::Grad;
  return std::tuple(static_cast<int>(direction_of(key.kind)), key.microbatch < 0 ? INT32_MAX : key.microbatch,
                    back ? -position : position);
}

}  // namespace

AgainstVerdict hold_against(const Recording& run, const Recording& one, bool use_perturbed) {
  if (run.microbatches != one.microbatches)
    throw InputError(run.folder.string() + " has " + std::to_string(run.microbatches) + " micro-batches, " +
                     one.folder.string() + " has " + std::to_string(one.microbatches) +
                     "; record the one-rank run with the same number");
  AgainstVerdict verdict;
  Aligner aligner(run, one, verdict);
  std::map<std::string, int> positions;
  for (const std::string& name : one.order) positions.emplace(name, static_cast<int>(positions.size()));
  const int steps = std::min(run.steps(), one.steps());
  for (int step = 0; step < steps && verdict.differing == 0; ++step, ++verdict.steps) {
    const Step actual = add_up_copies(read_step(run, step), one.tied), expected = step_like(actual, one, step);
    std::vector<AlignedValue> values = aligner.align(actual, expected);
    std::stable_sort(values.begin(), values.end(), [&](const AlignedValue& a, const AlignedValue& b) {
      return causal_place(a.key, positions) < causal_place(b.key, positions);
    });
    for (AlignedValue& value : values) {
      value.differs = !value.expected || !value.actual || *value.expected != *value.actual;
      verdict.equal += !value.differs;
      if (value.expected && value.actual) {
        verdict.elements += element_count(*value.expected);
        verdict.kinds.insert(value.key.kind);
      }
    }
    allow_orders(values, one, verdict);
    if (use_perturbed && !one.perturbed.empty()) allow_rounding(values, actual, one, step, verdict);
    verdict.differing = std::count_if(values.begin(), values.end(), [](const AlignedValue& v) { return v.differs; });
    const auto first = std::find_if(values.begin(), values.end(), [](const AlignedValue& v) { return v.differs; });
    if (first == values.end()) continue;
    verdict.first = first->out_of_bounds ? first->out_of_bounds : std::optional(difference_of(*first, step));
    verdict.rank = first->rank;
    verdict.direction = direction_name(direction_of(first->key.kind));
    if (comparable(*first)) verdict.norm_ratio = norm(*first->actual) / norm(*first->expected);
    verdict.where = where_to_look(values, static_cast<size_t>(first - values.begin()), step);
  }
  aligner.add_notes();
  if (run.steps() != one.steps())
    verdict.notes.push_back("the pipelined run has " + std::to_string(run.steps()) + " steps, the one-rank run " +
                            std::to_string(one.steps()));
  return verdict;
}

}  // namespace plumbline::conformance
