#include "conformance/judge.h"

#include <algorithm>
#include <set>

#include "conformance/backend/host_tensors.h"
#include "conformance/compare.h"
#include "conformance/expectation.h"
#include "reference/detached_run.h"
#include "reference/whole_model.h"
#include "runtime/error.h"
#include "runtime/schedule/generators.h"

namespace plumbline {
namespace {

/// More zeros than this in gradients prove too little: most wrong results would look the same.
constexpr double kMostZeros = 0.75;

/// A stage adds up its gradients in the order of its W where the backward comes in halves, else of its B.
StageOrders stage_orders(const Schedule& schedule) {
  StageOrders orders(schedule.stages);
  for (const std::vector<Action>& rank : schedule.ranks) {
    for (const Action& action : rank) {
      StageOrder& order = orders[action.stage];
      if (action.type == ActionType::F) order.forwards.push_back(action.microbatch);
      if (action.type == ActionType::B || action.type == ActionType::W) order.backwards.push_back(action.microbatch);
    }
  }
  return orders;
}

TensorMap of_kinds(const TensorMap& all, std::initializer_list<ResultKind> kinds) {
  TensorMap kept;
  for (const auto& [key, tensor] : all)
    if (std::find(kinds.begin(), kinds.end(), parse_result_key(key).kind) != kinds.end()) kept.emplace(key, tensor);
  return kept;
}

constexpr std::initializer_list<ResultKind> kFinal = {ResultKind::Grad, ResultKind::Buffer, ResultKind::Param};
constexpr std::initializer_list<ResultKind> kByMicrobatch = {ResultKind::Output, ResultKind::Loss};
constexpr std::initializer_list<ResultKind> kWhole = {ResultKind::Output, ResultKind::Loss, ResultKind::Grad,
                                                      ResultKind::Buffer, ResultKind::Param};

std::string first_of(const std::vector<Difference>& differences) {
  return differences.empty() ? "" : sentence(differences.front());
}

}  // namespace

struct Judge::Oracle {
  TensorMap detached;
  /// Only for bounded truth.
  Expectation bounded;
  /// Why the oracles cannot be trusted here; empty when they agree.
  std::string problem;
  /// What a reader of the verdict should know about it; mostly empty.
  std::string note;
};

const Judge::Oracle& Judge::oracle_for(const Case& c, const Schedule& schedule) {
  const StageOrders orders = stage_orders(schedule);
  std::string key = c.id + " " + std::to_string(c.microbatches);
  for (const StageOrder& order : orders) {
    key += ";";
    for (int microbatch : order.forwards) key += "F" + std::to_string(microbatch);
    for (int microbatch : order.backwards) key += "B" + std::to_string(microbatch);
  }
  if (const auto it = oracles_.find(key); it != oracles_.end()) return *it->second;

  auto oracle = std::make_shared<Oracle>();
  oracle->detached = to_host(run_detached(c, seed_, orders));
  const auto hold = [&](const char* what, const TensorMap& expected, std::initializer_list<ResultKind> kinds,
                        CompareMode mode, const Bounds& bounds = {}) {
    const std::string difference =
        first_of(compare(of_kinds(expected, kinds), of_kinds(oracle->detached, kinds), mode, bounds));
    if (!difference.empty() && oracle->problem.empty())
      oracle->problem = std::string("the oracles disagree (") + what + "): " + difference;
  };
  WholeModelOptions by_microbatch, at_once;
  by_microbatch.stages = schedule.stages;
  at_once.by_microbatch = false;
  switch (c.truth) {
    case Truth::Exact:
      oracle->problem = exactness_problem(c, seed_);
      hold("whole model, whole batch", to_host(run_whole_model(c, seed_, at_once)), kFinal, CompareMode::Numeric);
      hold("whole model", to_host(run_whole_model(c, seed_, by_microbatch)), kByMicrobatch, CompareMode::Numeric);
      break;
    case Truth::SameOrder: {
      const CaseTraits traits = case_traits(c, schedule.stages, seed_);
      if (!traits.shares_parameters) {
        hold("whole model", to_host(run_whole_model(c, seed_, by_microbatch)), kWhole, CompareMode::Bitwise);
      } else if (!traits.draws_random_numbers) {
        // Copies are added up in another order than one parameter's uses, so the whole model agrees within its bound.
        const Expectation expected = bounded_expectation(c, seed_);
        hold("float64 whole model", expected.value, kWhole, CompareMode::Bounded, expected.bounds);
      } else {
        oracle->note =
            "against the detached stages only: with random layers the whole model in float64 draws other masks";
      }
      break;
    }
    case Truth::Bounded:
      oracle->bounded = bounded_expectation(c, seed_);
      hold("float64 whole model", oracle->bounded.value, kWhole, CompareMode::Bounded, oracle->bounded.bounds);
      break;
  }
  return *oracles_.emplace(key, std::move(oracle)).first->second;
}

CaseVerdict Judge::judge(const Case& c, const std::string& schedule_name, const TensorMap& results) {
  CaseVerdict verdict;
  verdict.case_id = c.id;
  verdict.title = c.title;
  verdict.schedule = schedule_name;
  verdict.truth = c.truth;
  const Oracle& oracle = oracle_for(c, make_schedule(schedule_name, ranks_, c.microbatches));
  if (!oracle.problem.empty()) {
    verdict.status = Status::Error;
    verdict.reason = oracle.problem;
    return verdict;
  }
  const CompareMode mode = c.truth == Truth::Exact ? CompareMode::Numeric : CompareMode::Bitwise;
  std::vector<Difference> differences = compare(oracle.detached, results, mode);
  TensorMap checked = results;
  if (c.truth == Truth::Bounded) {
    // Values are judged by their bounds, which outputs, losses, gradients, buffers and parameters have; of the rest
    // only that it is there, in the right form. If a value is outside, the detached run tells where it began.
    checked = of_kinds(results, kWhole);
    const std::vector<Difference> outside =
        compare(oracle.bounded.value, checked, CompareMode::Bounded, oracle.bounded.bounds);
    if (outside.empty())
      std::erase_if(differences, [](const Difference& d) { return d.what == DifferenceKind::Value; });
    else if (differences.empty())
      differences = outside;
  }
  std::set<std::string> kinds;
  for (const auto& [key, tensor] : checked) {
    kinds.insert(std::string(kind_name(parse_result_key(key).kind)));
    verdict.elements += element_count(tensor);
  }
  verdict.tensors = static_cast<int64_t>(checked.size());
  verdict.checked.assign(kinds.begin(), kinds.end());
  set_differences(verdict, differences);
  verdict.reason = oracle.note;
  if (verdict.status == Status::Pass && c.truth == Truth::Exact && zero_fraction(results) > kMostZeros) {
    verdict.status = Status::Mistrusted;
    verdict.reason = "agrees, but " + std::to_string(static_cast<int>(100 * zero_fraction(results))) +
                     " % of all gradients are zero";
  }
  return verdict;
}

void merge_results(TensorMap& all, const TensorMap& part) {
  for (const auto& [key, tensor] : part) {
    const auto [it, inserted] = all.emplace(key, tensor);
    if (!inserted && it->second != tensor)
      throw Error("ranks disagree on " + key + " (copies of one tensor must be equal)");
  }
}

TensorMap merge_rank_files(const std::vector<std::filesystem::path>& files) {
  TensorMap merged;
  for (const std::filesystem::path& file : files) {
    if (!std::filesystem::exists(file)) throw Error("no results in " + file.string());
    try {
      merge_results(merged, read_tensor_file(file));
    } catch (const Error& error) {
      throw Error(file.string() + ": " + error.what());
    }
  }
  return merged;
}

Case with_microbatches(Case c, int microbatches, std::string& note) {
  if (microbatches == 0 || microbatches == c.microbatches) return c;
  c.microbatches = microbatches;
  const bool power_of_two = (microbatches & (microbatches - 1)) == 0;
  if (c.truth == Truth::Exact && !power_of_two) {
    c.truth = Truth::SameOrder;
    note = "judged as same-order: " + std::to_string(microbatches) + " micro-batches make divisions that are not exact";
  }
  return c;
}

}  // namespace plumbline
