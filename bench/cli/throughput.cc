// plumbline bench throughput: how close a schedule comes to its theoretical step time.
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "bench/cli/commands.h"
#include "bench/cli/recording.h"
#include "bench/cli/show_gaps.h"
#include "bench/steps/other_load.h"
#include "bench/steps/step_details.h"
#include "conformance/backend/built_models.h"
#include "conformance/protocol/command/backend_file.h"
#include "conformance/protocol/command/command_backend.h"
#include "conformance/protocol/process/process.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "conformance/report/chrome_trace.h"
#include "conformance/report/text.h"
#include "conformance/run/throughput.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

struct ThroughputOptions {
  std::string schedule = conformance::kMeasuredSchedules, sleep = "5/10", model, transport = "threads";
  int ranks = 4, microbatches = 8, steps = 30;
  RecordingOptions recording;
  std::string svg, trace;
  bool gaps = false, pin = false;
};

/// Rows of a micro-batch of a model.
constexpr int kRows = 2;

conformance::JobThroughput parse(const ThroughputOptions& options) {
  conformance::JobThroughput item;
  item.microbatches = options.microbatches;
  item.steps = options.steps;
  if (options.model.empty()) {
    int end = 0;
    const char* text = options.sleep.c_str();
    if (std::sscanf(text, "%lf/%lf%n", &item.forward_ms, &item.backward_ms, &end) != 2 || text[end] != '\0' ||
        !(item.forward_ms > 0) || !(item.backward_ms > 0) || item.forward_ms > 1e6 || item.backward_ms > 1e6)
      throw InputError("--sleep: '" + options.sleep +
                       "'; expected milliseconds of a forward and a backward, such as 5/10");
    return item;
  }
  item.model = options.model;
  item.rows = kRows * options.microbatches;
  return item;
}

/// The program next to this one.
std::string plumbline_path() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "plumbline").string();
}

/// "throughput/1f1b/sleep:5+10/ranks:4/microbatches:8/threads"
std::string benchmark_name(const conformance::JobThroughput& item, const ThroughputOptions& options) {
  std::string workload = "model:" + item.model;
  if (item.model.empty())
    workload = "sleep:" + significant(item.forward_ms, 6) + "+" + significant(item.backward_ms, 6);
  return "throughput/" + item.schedule + "/" + workload + "/ranks:" + std::to_string(options.ranks) +
         "/microbatches:" + std::to_string(item.microbatches) + "/" + options.transport;
}

void record(const conformance::Throughput& measured, const std::vector<double>& steps, double efficiency,
            const std::string& name, Recording& recording) {
  recording.add(name, {.name = "step", .unit = "s", .samples = steps});
  Figure over_ideal{.name = "over_ideal", .unit = "1"};
  for (const double seconds : steps)
    over_ideal.samples.push_back(seconds / measured.step_seconds * measured.ratio_to_ideal_step);
  recording.add(name, std::move(over_ideal));
  recording.add(name, {.name = "efficiency", .unit = "1", .better = Better::Higher, .samples = {efficiency}});
}

/// The settings of Open MPI 4 and 5 and of MPICH by which each rank gets a core, in turn where there are fewer cores.
const std::map<std::string, std::string> kPinned = {{"OMPI_MCA_hwloc_base_binding_policy", "core:overload-allowed"},
                                                    {"PRTE_MCA_hwloc_default_binding_policy", "core:overload-allowed"},
                                                    {"HYDRA_BINDING", "core"}};

int measure(const ThroughputOptions& options) {
  if (options.pin && options.transport != "mpi")
    throw InputError("--pin: only ranks that are processes (--transport mpi)");
  conformance::Job job;
  job.ranks = options.ranks;
  conformance::JobThroughput workload = parse(options);
  workload.trace = options.gaps || !options.svg.empty() || !options.trace.empty();
  std::vector<std::string> left_out;
  job.throughput = conformance::measurements({&workload, 1}, conformance::choose_schedules(options.schedule),
                                             options.ranks, *conformance::built_models(job.seed), left_out);
  if (job.throughput.empty()) throw InputError(left_out.back());
  for (const std::string& why : left_out) std::fprintf(stderr, "left out: %s\n", why.c_str());
  if (workload.trace && job.throughput.size() > 1)
    throw InputError("--gaps, --svg and --trace show one schedule; name it with --schedule");
  const TemporaryFolder out;
  Recording recording(options.recording);
  conformance::end_children_on_signals();
  conformance::BackendSpec spec = conformance::runtime_backend(plumbline_path(), job.timeout_seconds);
  spec.silence = std::chrono::minutes(10);  // a measurement may take long
  if (options.pin) spec.environment.insert(kPinned.begin(), kPinned.end());
  const OtherLoad load;
  const conformance::CommandBackend runtime(std::move(spec), conformance::transport_kind(options.transport).value());
  const conformance::ThroughputRun run = conformance::measure_throughput(runtime, job, out.path());
  const double others = load.share();
  const unsigned cores = std::thread::hardware_concurrency();
  std::vector<StepDetails> details;
  for (size_t i = 0; i < run.measured.size(); ++i)
    details.push_back(read_step_details(job.throughput[i], i, job.ranks, out.path()));
  std::fputs(conformance::throughput_text(run.measured, cores).c_str(), stdout);
  if (!details.empty())
    std::fputs(("\n" + details_text(details, job.throughput) + cores_text(details[0], cores, others)).c_str(), stdout);
  if (!run.failed.empty()) {
    std::fflush(stdout);
    std::fprintf(stderr, "plumbline-bench: %s\n", run.failed.c_str());
    return 1;
  }
  for (size_t i = 0; i < run.measured.size(); ++i)
    record(run.measured[i], run.steps[i], details[i].efficiency(), benchmark_name(job.throughput[i], options),
           recording);
  recording.write();
  if (!workload.trace) return 0;
  const std::vector<schedule::Trace> traces =
      conformance::measured_traces(job.throughput.front(), 0, job.ranks, out.path());
  if (options.gaps) {
    show_gaps(traces.back(), benchmark_name(job.throughput.front(), options), {options.svg, options.trace});
    return 0;
  }
  if (!options.svg.empty()) write_file(options.svg, run.measured.front().timeline);
  if (!options.trace.empty()) write_file(options.trace, conformance::chrome_trace(traces));
  return 0;
}

}  // namespace

void add_throughput(CLI::App& app, cli::Command& chosen) {
  auto options = std::make_shared<ThroughputOptions>();
  CLI::App* command = app.add_subcommand(
      "throughput",
      "Run schedules and compare the time of a step with the shortest possible one (step/ideal).\n"
      "Stages that sleep show what schedule, engine and transport cost; their ideal is the simulator's. Stages of\n"
      "a model do real work; their ideal is the same work without waiting, on all available processors. A second\n"
      "table has percentiles, each rank's time by use, its memory beside what the schedule plans, and the efficiency:\n"
      "the simulator's step with the measured durations over the measured step.");
  command
      ->add_option("--schedule", options->schedule,
                   "Schedules whose name matches this pattern; separate several by commas")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "Number of ranks; the schedule determines how many stages each has")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--microbatches", options->microbatches, "Number of micro-batches in a step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  CLI::Option* sleep =
      command
          ->add_option(
              "--sleep", options->sleep,
              "Stages that sleep: milliseconds of forward/backward per rank, divided among its stages; each half of a "
              "split backward takes half of it")
          ->capture_default_str();
  command->add_option("--model", options->model, "Stages of this model of the corpus, for example transformer-lm")
      ->excludes(sleep);
  command->add_option("--steps", options->steps, "Steps to measure, after three to warm up; the median is reported")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--transport", options->transport,
                   "threads: ranks are threads of one process; mpi: processes under mpirun")
      ->check(CLI::IsMember({"threads", "mpi"}).description(""))
      ->type_name("threads|mpi")
      ->capture_default_str();
  command->add_flag("--pin", options->pin, "Give each rank a core of its own, with --transport mpi");
  command
      ->add_option(
          "--svg", options->svg,
          "Draw the last step of one schedule, with the simulator's prediction above it: from the requested times "
          "for stages that sleep, from the measured means for a model")
      ->type_name("F.svg");
  command->add_option("--trace", options->trace, "The same for ui.perfetto.dev (Chrome trace events)")
      ->type_name("F.json");
  command->add_flag(
      "--gaps", options->gaps,
      "Say why each rank was idle in the last step of one schedule, and show the critical path; --svg and "
      "--trace then show that");
  add_recording_options(*command, options->recording);
  command->callback([options, &chosen] { chosen = [options] { return measure(*options); }; });
}

}  // namespace plumbline::bench
