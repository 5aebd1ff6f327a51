#include "conformance/backend/runtime.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <optional>

#include "conformance/backend/built_models.h"
#include "conformance/backend/engine_subject.h"
#include "conformance/backend/flight/rank_flight.h"
#include "conformance/backend/measure.h"
#include "conformance/backend/rank_threads.h"
#include "conformance/backend/shared_job.h"
#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/judge.h"
#include "conformance/mutants/mutants.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/report/context.h"
#include "reference/host_results.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/transport/adverse_wire.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/leftovers.h"

namespace plumbline::conformance {
namespace {

/// The bytes of this rank's result file.
std::string run_one(const Job& job, const JobCase& item, c10::Device device, transport::Transport& transport) {
  std::string note;
  const reference::Case c = with_microbatches(find_case(item.id), job.microbatches, note);
  EngineCaseOptions options{case_schedule(c, ChosenSchedule{item.schedule, item.csv}, job.ranks), job.seed,
                            transport::from_seconds(job.timeout_seconds)};
  options.recompute.policy =
      engine::parse_recompute(job.recompute == "never" && job.remat.empty() ? c.recompute : job.recompute);
  options.remat = {job.remat, job.remat_policy};
  options.device = device;
  std::atomic<int64_t> happened = 0;
  Fault fault;
  const transport::Wire wire = transport::parse_wire(job.wire);
  const std::unique_ptr<transport::Transport> adverse =
      wire.adverse() && device.is_cpu() ? transport::adverse_wire(transport, wire, job.seed) : nullptr;
  transport::Transport& between = adverse ? *adverse : transport;
  std::unique_ptr<transport::Transport> mutated;
  if (!job.mutant.empty()) {
    const schedule::Schedule& schedule = options.schedule;
    fault = find_mutant(job.mutant).make({c, schedule, job.seed, transport.rank(), happened});
    options.fault = &fault;
    if (fault.transport) mutated = fault.transport(between);
  }
  return encode_tensors(reference::to_host(run_case_on_rank(c, mutated ? *mutated : between, options)));
}

transport::Deadline patient(const Job& job) {
  return transport::Deadline::patient(transport::from_seconds(job.timeout_seconds));
}

void run_all(const Job& job, c10::Device device, RankFlight* flight, transport::Transport& transport,
             const std::filesystem::path& out, const OnEvent& on_event) {
  const auto report = [&](bool throughput, size_t index, bool done) {
    if (transport.rank() == 0) on_event({.throughput = throughput, .index = index, .done = done});
  };
  const auto limit = [&] { return transport::Deadline::after(transport::from_seconds(job.timeout_seconds)); };
  const auto execute = [&](bool throughput, size_t index) {
    report(throughput, index, /*done=*/false);
    // Rank 0 comes late if it judges, or if its events have no reader for a while; the others wait for that here.
    transport::barrier(transport, transport.rank() == 0 ? limit() : patient(job));
    std::string bytes;
    if (throughput) {
      bytes = measure_on_rank(job.throughput[index], job, transport);
    } else {
      transport::Leftovers watched(transport);
      bytes = run_one(job, job.cases[index], device, watched);
      // A rank that waits for a message gives up first, and says for which one.
      transport::barrier(watched, transport::Deadline::after(2 * transport::from_seconds(job.timeout_seconds)));
      watched.expect_none();
    }
    const auto path_of = [&](int rank) {
      return throughput ? throughput_path(out, index, rank) : result_path(out, job.cases[index], rank);
    };
    gather_to_files(transport, bytes, out, path_of, limit());
    report(throughput, index, /*done=*/true);
  };
  const auto execute_case = [&](size_t index) {
    try {
      execute(/*throughput=*/false, index);
    } catch (const TimeoutError& error) {
      if (flight == nullptr) throw;
      throw TimeoutError(error.what() + flight->explain_timeout(flight_page(out, job.cases[index])));
    }
  };
  for (size_t i = 0; i < job.cases.size(); ++i) execute_case(i);
  for (size_t i = 0; i < job.throughput.size(); ++i) execute(/*throughput=*/true, i);
}

void run_on_rank(const Job& job, c10::Device device, transport::Transport& transport, const std::filesystem::path& out,
                 const OnEvent& on_event) {
  // Ranks share the cores; and with one thread each kernel adds up in one order.
  at::set_num_threads(1);
  try {
    std::optional<RankFlight> flight;
    if (job.throughput.empty()) flight.emplace(transport, out, patient(job));  // a log would be measured as well
    run_all(job, device, flight ? &*flight : nullptr, flight ? flight->transport() : transport, out, on_event);
  } catch (const std::exception& error) {
    transport.abort(graph::error_text(error));
    throw;
  }
}

bool has_offload(const std::vector<schedule::Action>& actions) {
  return std::ranges::any_of(actions, [](const schedule::Action& a) { return schedule::is_offload(a.type); });
}

bool changes_messages(const std::string& mutant, const reference::Case& c, const schedule::Schedule& schedule) {
  std::atomic<int64_t> happened = 0;
  return !mutant.empty() && find_mutant(mutant).make({c, schedule, 0, 0, happened}).transport != nullptr;
}

/// Why the runtime cannot run a case of the job; empty when it can.
std::string why_not(const JobCase& item, const Job& job, ModelFacts& models) {
  try {
    std::string note;
    const reference::Case c = with_microbatches(find_case(item.id), job.microbatches, note);
    const schedule::Schedule schedule = case_schedule(c, ChosenSchedule{item.schedule, item.csv}, job.ranks);
    if (c.weight_closures && job.recompute != "never")
      return "gradients of parameters that are computed apart, in a stage that is run again (weight_closures with "
             "--recompute): the second forward has copies of the parameters";
    if (c.model == "lstm" && c.truth == reference::Truth::SameOrder && job.recompute != "never")
      return "LSTM layers in a stage that is run again (--recompute): where no gradient is recorded, LibTorch calls "
             "another kernel, whose last bits differ";
    if (job.device != "cpu" && std::ranges::any_of(schedule.ranks, has_offload))
      return "schedule " + item.schedule + " offloads activations, which is implemented for the CPU only";
    if (job.device != "cpu" && changes_messages(job.mutant, c, schedule))
      return "mutant " + job.mutant + " changes messages on the host, which those of a device do not reach";
    return why_unsupported(c, schedule, models, {job.remat, job.remat_policy});
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

BackendDescription Runtime::describe() const {
  BackendDescription runtime;
  runtime.name = name();
  runtime.version = plumbline_version();
  runtime.features = {"throughput", "mutant", "recompute", "remat", kOffloadFeature};
  runtime.wire = transport::wire_words();
  runtime.delivers = all_result_kinds();
  runtime.libtorch = TORCH_VERSION;
  return runtime;
}

std::vector<std::optional<PlanAnswer>> Runtime::plan(const Job& job, const std::filesystem::path&) const {
  const std::unique_ptr<ModelFacts> models = built_models(job.seed);
  std::vector<std::optional<PlanAnswer>> answers;
  for (const JobCase& item : job.cases) {
    std::string why = why_not(item, job, *models);
    const bool supported = why.empty();
    answers.push_back(PlanAnswer{supported, std::move(why)});
  }
  return answers;
}

JobResult Runtime::run(const Job& job, const std::filesystem::path& out, const OnEvent& on_event) const {
  if (rank_ != nullptr)
    run_on_rank(job, device_, *rank_, out, on_event);
  else
    run_thread_ranks_on(job.device, transport::parse_wire(job.wire).slow, job.ranks,
                        [&](transport::Transport& transport, c10::Device device) {
                          run_on_rank(job, device, transport, out, on_event);
                        });
  return {.succeeded = true, .any_event = !job.cases.empty() || !job.throughput.empty(), .ending = "ended"};
}

}  // namespace plumbline::conformance
