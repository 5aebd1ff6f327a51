#include "conformance/mutants/fault_runner.h"

#include <ATen/Parallel.h>

#include "conformance/backend/engine_subject.h"
#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/rank_files.h"
#include "conformance/judge/verdict/verdict.h"
#include "reference/host_results.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/text/one_line.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::conformance {
namespace {

constexpr auto kPatient = std::chrono::seconds(60);
/// For faults after which a rank waits for a message that never comes: a longer wait would not help.
constexpr auto kShort = std::chrono::seconds(1);

}  // namespace

FaultRunner::Place& FaultRunner::find(const RunId& run) {
  const auto it = places_.find(run);
  if (it != places_.end()) return it->second;
  const reference::Case& c = find_case(run.case_id);
  return places_.emplace(run, Place{c, case_schedule(c, {run.schedule, c.schedule_csv}, run.ranks), {}}).first->second;
}

MutantRun FaultRunner::traits(const RunId& run) {
  const Place& place = find(run);
  const auto [it, is_new] = traits_.try_emplace({run.case_id, place.schedule.stages});
  if (is_new) it->second = case_traits(place.of, place.schedule.stages, seed_);
  return {place.of, place.schedule, it->second};
}

const FaultOutcome& FaultRunner::untouched(const RunId& run) {
  Place& place = find(run);
  if (!place.untouched) place.untouched = this->run(run, {}, kPatient);
  return *place.untouched;
}

FaultOutcome FaultRunner::run(const RunId& run, const std::function<Fault(const FaultSite&)>& make,
                              transport::Clock::duration timeout) {
  const Place& place = find(run);
  FaultOutcome outcome;
  std::atomic<int64_t> happened = 0;
  try {
    std::vector<RankResults> ranks(run.ranks);
    transport::run_thread_ranks(run.ranks, [&](transport::Transport& transport) {
      at::set_num_threads(1);  // for this thread: each kernel sums in one order
      EngineCaseOptions options{place.schedule, seed_, timeout};
      options.recompute.policy = engine::parse_recompute(place.of.recompute);
      const Fault fault = make ? make({place.of, place.schedule, seed_, transport.rank(), happened}) : Fault();
      options.fault = &fault;
      const std::unique_ptr<transport::Transport> around = fault.transport ? fault.transport(transport) : nullptr;
      ranks[transport.rank()] = {"rank " + std::to_string(transport.rank()),
                                 reference::to_host(run_case_on_rank(place.of, around ? *around : transport, options)),
                                 transport.rank()};
    });
    outcome.results = merge_results(ranks, {place.of.replicas, run.ranks / place.of.replicas});
    const Finding finding = judge_.judge(place.of, place.schedule, outcome.results);
    outcome.status = finding.status;
    outcome.reason = sentence(Verdict{{place.of.id, place.schedule.name}, {}, {}, {}, {}, finding});
    if (finding.first) outcome.first = finding.first->key;
  } catch (const TimeoutError& error) {
    outcome.status = Status::Timeout;
    outcome.reason = one_line(graph::error_text(error));
  } catch (const std::exception& error) {
    outcome.status = Status::Error;
    outcome.reason = one_line(graph::error_text(error));
  }
  if (outcome.status == Status::Timeout || outcome.status == Status::Error) outcome.results.clear();
  outcome.happened = happened;
  return outcome;
}

std::pair<Kill, std::string> FaultRunner::kill(const RunId& place, const Mutant& mutant) {
  if (const std::string lacks = why_not(mutant, traits(place)); !lacks.empty()) return {Kill::NotApplicable, lacks};
  const FaultOutcome outcome = run(place, mutant.make, mutant.hangs ? kShort : kPatient);
  switch (outcome.status) {
    case Status::Pass:
      return {outcome.happened > 0 ? Kill::Survived : Kill::NeverHappened, ""};
    case Status::Error:
      return {Kill::Error, outcome.reason};
    case Status::Timeout:
      return {Kill::Timeout, outcome.reason};
    default:
      return {Kill::Fail, outcome.reason};
  }
}

}  // namespace plumbline::conformance
