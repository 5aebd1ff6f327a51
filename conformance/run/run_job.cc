#include "conformance/run/run_job.h"

#include <ATen/Parallel.h>

#include "conformance/backend/engine_subject.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/judge.h"
#include "conformance/mutants/mutants.h"
#include "conformance/protocol/chosen_schedule.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/run/throughput.h"
#include "reference/host_results.h"
#include "runtime/graph/error_text.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/threads.h"

namespace plumbline::conformance {
namespace {

void run_one(const Job& job, const JobCase& item, transport::Transport& transport, const std::filesystem::path& out) {
  std::string note;
  const reference::Case c = with_microbatches(find_case(item.id), job.microbatches, note);
  EngineCaseOptions options{
      make_schedule(ChosenSchedule{item.schedule, item.csv}, job.ranks, c.microbatches), job.seed,
      std::chrono::duration_cast<transport::Clock::duration>(std::chrono::duration<double>(job.timeout_seconds))};
  options.recompute.policy =
      engine::parse_recompute(job.recompute == "never" && job.remat.empty() ? c.recompute : job.recompute);
  options.remat = {job.remat, job.remat_policy};
  std::atomic<int64_t> happened = 0;
  Fault fault;
  std::unique_ptr<transport::Transport> mutated;
  if (!job.mutant.empty()) {
    const schedule::Schedule& schedule = options.schedule;
    fault = find_mutant(job.mutant).make({c, schedule, job.seed, transport.rank(), happened});
    options.fault = &fault;
    if (fault.transport) mutated = fault.transport(transport);
  }
  const reference::Results results = run_case_on_rank(c, mutated ? *mutated : transport, options);
  const std::filesystem::path path = result_path(out, item, transport.rank());
  std::filesystem::create_directories(path.parent_path());
  write_tensor_file(path, reference::to_host(results));
}

void run_all(const Job& job, transport::Transport& transport, const std::filesystem::path& out,
             const JobProgress& progress) {
  const auto say = [&](const std::string& line) {
    if (transport.rank() == 0) progress(line);
  };
  const auto meet = [&] {
    transport::barrier(transport, transport::Deadline::after(std::chrono::duration_cast<transport::Clock::duration>(
                                      std::chrono::duration<double>(job.timeout_seconds))));
  };
  for (size_t i = 0; i < job.cases.size(); ++i) {
    say("case " + std::to_string(i) + " begins");
    run_one(job, job.cases[i], transport, out);
    meet();
    say("case " + std::to_string(i) + " done");
    // Rank 0 may be judging now; the others' deadlines are for messages, not for that.
    transport::barrier(transport, transport::Deadline::never());
  }
  for (size_t i = 0; i < job.throughput.size(); ++i) {
    say("throughput " + std::to_string(i) + " begins");
    measure_on_rank(job.throughput[i], job, transport, throughput_path(out, i, transport.rank()));
    meet();
    say("throughput " + std::to_string(i) + " done");
    transport::barrier(transport, transport::Deadline::never());
  }
}

}  // namespace

void run_job_on_rank(const Job& job, transport::Transport& transport, const std::filesystem::path& out,
                     const JobProgress& progress) {
  // Ranks share the cores; and with one thread each kernel adds up in one order.
  at::set_num_threads(1);
  try {
    run_all(job, transport, out, progress);
  } catch (const std::exception& error) {
    transport.abort(graph::error_text(error));
    throw;
  }
}

void run_job_on_threads(const Job& job, const std::filesystem::path& out, const JobProgress& progress) {
  transport::run_thread_ranks(job.ranks,
                              [&](transport::Transport& transport) { run_job_on_rank(job, transport, out, progress); });
}

}  // namespace plumbline::conformance
