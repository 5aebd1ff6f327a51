#include "conformance/mutants/random_fault.h"

#include <algorithm>
#include <array>
#include <random>

#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/compare.h"
#include "conformance/mutants/hooked_stage.h"
#include "conformance/mutants/hooked_steps.h"
#include "conformance/mutants/hooked_transport.h"
#include "reference/oracle/optimizer.h"
#include "reference/sum_of.h"
#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

/// Where a fault can strike. An event is one message, one tensor at a hook, one action of a rank's list, or one
/// optimizer step.
enum Site {
  kMessage,
  kSharing,
  kOutput,
  kInput,
  kRootGrad,
  kInputGrad,
  kSum,
  kParameter,
  kAction,
  kStepGrad,
  kState,
  kUpdated,
  kUpdate,
  kSites
};
constexpr std::array<const char*, kSites> kWords = {"a message",
                                                    "a message about a parameter of several ranks",
                                                    "an output of a stage",
                                                    "an input of a stage",
                                                    "a gradient of a stage's output",
                                                    "a gradient of a stage's input",
                                                    "an accumulated gradient",
                                                    "a parameter",
                                                    "an action",
                                                    "a gradient that the optimizer reads",
                                                    "a tensor of the optimizer's state",
                                                    "a parameter after its update",
                                                    "an optimizer step"};

/// The drawn event, and the change to it.
struct Draw {
  Site site = kMessage;
  int rank = 0;
  int64_t event = 0;
  uint64_t element = 0, bit = 0;
  /// Of a message: 0..3 changed, 4 lost, 5 doubled; of an action, modulo 3: 0 left out, 1 doubled, 2 swapped; of an
  /// optimizer step, modulo 2: 0 left out, 1 doubled.
  int manner = 0;

  bool is_message() const { return site == kMessage || site == kSharing; }
};

/// Flips one bit in memory, unseen by autograd; false if the tensor has no floating-point element.
bool flip(const at::Tensor& tensor, const Draw& draw) {
  if (!tensor.defined() || !tensor.is_floating_point() || tensor.numel() == 0) return false;
  auto rest = static_cast<int64_t>(draw.element % static_cast<uint64_t>(tensor.numel()));
  int64_t offset = 0;
  for (int64_t d = tensor.dim(); d-- > 0; rest /= tensor.size(d)) offset += rest % tensor.size(d) * tensor.stride(d);
  const auto size = static_cast<int64_t>(tensor.element_size());
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(tensor.const_data_ptr())) + offset * size;
  const uint64_t bit = draw.bit % static_cast<uint64_t>(8 * size);
  bytes[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
  return true;
}

/// Counts the events of one rank, or picks the one at which the fault strikes.
class Watch {
 public:
  /// Counts events into `counts`, by site.
  explicit Watch(std::vector<int64_t>* counts) : counts_(counts) {}
  /// Strikes at the drawn event.
  explicit Watch(const Draw& draw) : draw_(draw) {}

  /// Whether the fault strikes at this event of `site`. Call it once per event.
  bool strikes(Site site) {
    if (counts_) ++(*counts_)[site];
    return !counts_ && site == draw_.site && seen_++ == draw_.event;
  }
  const Draw& draw() const { return draw_; }

 private:
  std::vector<int64_t>* counts_ = nullptr;
  Draw draw_;
  int64_t seen_ = 0;
};

using Strike = std::shared_ptr<Watch>;

void pass(const FaultSite& at, const Strike& watch, Site site, const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point() || tensor.numel() == 0 || !watch->strikes(site)) return;
  if (flip(tensor, watch->draw())) at.happens();
}

StageHooks stage_hooks(const FaultSite& at, const Strike& watch) {
  const auto passing = [at, watch](Site site) {
    return [at, watch, site](int, Tensors& tensors) {
      for (const at::Tensor& tensor : tensors) pass(at, watch, site, tensor);
    };
  };
  StageHooks hooks = {.inputs = passing(kInput),
                      .outputs = passing(kOutput),
                      .root_grads = passing(kRootGrad),
                      .input_grads = passing(kInputGrad)};
  // This hook adds in place of autograd, so that a user's hook after the addition would see a part.
  if (!at.of.accumulation_hooks)
    hooks.accumulate = [at, watch](int, const std::string&, const at::Tensor& before, const at::Tensor& part) {
      at::Tensor sum = reference::sum_of(before, part);
      if (sum.defined() && sum.is_floating_point()) {
        sum = sum.clone();
        pass(at, watch, kSum, sum);
      }
      return sum;
    };
  return hooks;
}

/// The optimizer step of one rank: what it reads, whether it runs, and what it writes.
void strike(const FaultSite& at, const Strike& watch, reference::CaseSubject& inner,
            reference::CaseOptimizer& optimizer) {
  for (const auto& [name, parameter] : inner.parameters()) {
    if (!parameter.grad().defined() || !watch->strikes(kStepGrad)) continue;
    const at::Tensor changed = parameter.grad().clone();  // others may share its memory
    if (flip(changed, watch->draw())) at.happens();
    parameter.mutable_grad() = changed;
  }
  for (const auto& [name, tensor] : optimizer.state()) pass(at, watch, kState, tensor);
  int times = 1;
  if (watch->strikes(kUpdate)) {
    times = watch->draw().manner % 2 == 0 ? 0 : 2;
    at.happens();
  }
  for (int i = 0; i < times; ++i) inner.update(optimizer);
  for (const auto& [name, parameter] : inner.parameters()) pass(at, watch, kUpdated, parameter);
}

void strike(const FaultSite& at, const Strike& watch, Message& message) {
  const bool is_of_stages = message.load == Load::Value || message.load == Load::Gradient;
  if (message.body.empty() || !watch->strikes(is_of_stages ? kMessage : kSharing)) return;
  const Draw& draw = watch->draw();
  if (draw.manner == 4) {
    message.times = 0;
  } else if (draw.manner == 5) {
    message.times = 2;
  } else if (const at::Tensor numbers = as_numbers(message.body, at); numbers.defined()) {
    flip(numbers, draw);
  } else {
    message.body[draw.element % message.body.size()] ^= std::byte{1};
  }
}

/// With replicas, the actions that gather parameters and sum gradients are in the list as well.
void strike(const FaultSite& at, const Strike& watch, schedule::Schedule& schedule) {
  if (at.of.replicas > 1) schedule = with_replica_actions(schedule, replica_options(at.of));
  std::vector<schedule::Action>& actions = schedule.ranks[at.rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    if (!watch->strikes(kAction)) continue;
    const auto here = actions.begin() + static_cast<std::ptrdiff_t>(i);
    const int manner = watch->draw().manner % 3;
    at.happens();
    if (manner == 0)
      actions.erase(here);
    else if (manner == 1)
      actions.insert(here, schedule::Action{here->stage, here->type, here->microbatch});
    else
      std::swap(actions[i], actions[(i + 1) % actions.size()]);
    return;
  }
}

/// The fault around one rank: counts or strikes, as `watch` decides.
Fault around(const FaultSite& at, const Strike& watch) {
  Fault fault;
  fault.schedule = [at, watch](schedule::Schedule& schedule) { strike(at, watch, schedule); };
  fault.transport = [at, watch](transport::Transport& inner) {
    return with_hooks(inner, at, {.send = [at, watch](Message& message) { strike(at, watch, message); }});
  };
  fault.steps = step_fault({.update = [at, watch](reference::CaseSubject& inner, reference::CaseOptimizer& optimizer) {
                  const c10::NoGradGuard no_grad;
                  strike(at, watch, inner, optimizer);
                }}).steps;
  auto known = std::make_shared<std::vector<int>>();
  fault.stage = [at, watch, known](int stage, const split::StageState& state,
                                   std::unique_ptr<engine::StageRunner> inner) {
    // A stage is built again for evaluations, with the same parameters.
    if (std::find(known->begin(), known->end(), stage) == known->end()) {
      known->push_back(stage);
      for (const auto& [name, parameter] : state.parameters) pass(at, watch, kParameter, parameter);
    }
    return with_hooks(std::move(inner), at, state, stage_hooks(at, watch));
  };
  return fault;
}

std::string words(const Draw& draw) {
  const std::string place = std::string(kWords[draw.site]) + " of rank " + std::to_string(draw.rank) + ", number " +
                            std::to_string(draw.event);
  if (draw.site == kAction)
    return std::array{"left out: ", "doubled: ", "swapped with the next: "}[draw.manner % 3] + place;
  if (draw.site == kUpdate) return std::array{"left out: ", "doubled: "}[draw.manner % 2] + place;
  if (draw.is_message() && draw.manner >= 4) return (draw.manner == 4 ? "lost: " : "doubled: ") + place;
  return "bit " + std::to_string(draw.bit) + " of element " + std::to_string(draw.element) +
         " (modulo their counts) flipped: " + place;
}

/// Half of the changed values differ in the last bit only, the change that is easiest to miss.
Draw drawn(std::mt19937_64& random, const std::vector<std::vector<int64_t>>& events) {
  Draw draw;
  std::vector<int64_t> totals(kSites);
  for (int site = 0; site < kSites; ++site)
    for (const int64_t count : events[site]) totals[site] += count;
  do draw.site = static_cast<Site>(random() % kSites);
  while (totals[draw.site] == 0);
  auto event = static_cast<int64_t>(random() % static_cast<uint64_t>(totals[draw.site]));
  while (event >= events[draw.site][draw.rank]) event -= events[draw.site][draw.rank++];
  draw.event = event;
  draw.element = random() % 4096;
  draw.bit = random() % 2 == 0 ? 0 : random() % 64;
  draw.manner = static_cast<int>(random() % 6);
  return draw;
}

}  // namespace

std::string_view fault_end_name(FaultEnd end) {
  return std::array<std::string_view, 4>{"caught", "no-effect", "allowed", "missed"}[static_cast<size_t>(end)];
}

const RandomFaults::Events& RandomFaults::events(const RunId& run) {
  const auto it = events_.find(run);
  if (it != events_.end()) return it->second;
  std::vector<std::vector<int64_t>> by_rank(run.ranks, std::vector<int64_t>(kSites));
  const FaultOutcome counted = runner_.run(
      run, [&](const FaultSite& at) { return around(at, std::make_shared<Watch>(&by_rank[at.rank])); },
      std::chrono::seconds(60));
  if (counted.status != Status::Pass)
    throw Error(to_string(run) + " does not pass while its events are counted: " + counted.reason);
  Events events(kSites, std::vector<int64_t>(run.ranks));
  for (int site = 0; site < kSites; ++site)
    for (int rank = 0; rank < run.ranks; ++rank) events[site][rank] = by_rank[rank][site];
  return events_.emplace(run, std::move(events)).first->second;
}

RandomFault RandomFaults::put_in(uint64_t seed) {
  std::mt19937_64 random(seed);
  RandomFault fault;
  fault.seed = seed;
  fault.run = runs_[random() % runs_.size()];
  const FaultOutcome& untouched = runner_.untouched(fault.run);
  if (untouched.status != Status::Pass)
    throw Error(to_string(fault.run) + " does not pass without a fault: " + untouched.reason);
  const Draw draw = drawn(random, events(fault.run));
  fault.what = words(draw);
  // A missing message or action can make a rank wait forever.
  const bool may_hang = draw.site == kAction || (draw.is_message() && draw.manner == 4);
  const FaultOutcome outcome = runner_.run(
      fault.run,
      [&](const FaultSite& at) {
        Draw mine = draw;
        if (at.rank != draw.rank) mine.event = -1;
        return around(at, std::make_shared<Watch>(mine));
      },
      std::chrono::seconds(may_hang ? 5 : 60));
  fault.status = outcome.status;
  const reference::Truth truth = find_case(fault.run.case_id).truth;
  if (outcome.status != Status::Pass) {
    fault.end = FaultEnd::Caught;
    fault.why = outcome.reason;
  } else if (outcome.results == untouched.results) {
    fault.end = FaultEnd::NoEffect;
    fault.why = "all " + std::to_string(outcome.results.size()) + " tensors that the run delivers are bitwise equal";
  } else if (truth == reference::Truth::Bounded) {
    fault.end = FaultEnd::Allowed;
    fault.why = "every element stays within its error bound";
  } else if (truth == reference::Truth::Exact &&
             compare(untouched.results, outcome.results, CompareMode::Numeric).empty()) {
    fault.end = FaultEnd::Allowed;
    fault.why = "only the sign of zeros differs";
  } else {
    fault.end = FaultEnd::Missed;
    fault.why = "results differ from those without the fault, and pass";
  }
  return fault;
}

std::string summary(const std::vector<RandomFault>& faults) {
  std::map<std::string, int> ends, statuses, reasons;
  for (const RandomFault& fault : faults) {
    ++ends[std::string(fault_end_name(fault.end))];
    if (fault.end == FaultEnd::Caught) ++statuses[std::string(status_name(fault.status))];
    if (fault.end == FaultEnd::Allowed) ++reasons[fault.why];
  }
  std::string text = std::to_string(faults.size()) + " faults: " + std::to_string(ends["caught"]) + " caught";
  const char* before = " (";
  for (const auto& [status, count] : statuses) {
    text += before + std::to_string(count) + " by " + status;
    before = ", ";
  }
  if (!statuses.empty()) text += ")";
  text += ", " + std::to_string(ends["no-effect"]) + " without effect (every result bitwise equal)";
  for (const auto& [reason, count] : reasons) text += ", " + std::to_string(count) + " allowed (" + reason + ")";
  return text + ", " + std::to_string(ends["missed"]) + " missed\n";
}

}  // namespace plumbline::conformance
