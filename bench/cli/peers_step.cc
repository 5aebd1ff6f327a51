// plumbline bench peers step: steps of pipelines by plumbline and by another engine.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>

#include "bench/cli/commands.h"
#include "bench/cli/peer_options.h"
#include "bench/cli/recording.h"
#include "bench/peers/measured_steps.h"
#include "bench/peers/peer_engines.h"
#include "bench/peers/pipeline_round.h"
#include "bench/peers/plain_gradients.h"
#include "bench/peers/side.h"
#include "bench/peers/step_report.h"
#include "conformance/protocol/command/command_backend.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/median.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/text/join.h"
#include "runtime/transport/mpi/mpi.h"

namespace plumbline::bench {
namespace {

struct StepOptions {
  std::string python, engine = "pytorch";
  std::vector<std::string> models = {"mlp:4,1,16,8", "transformer:2,32,128,8", "transformer:2,128,256,8"};
  std::vector<std::string> schedules;  ///< empty: those that the engine has
  int ranks = 2, microbatches = 8, threads = 1, rounds = 3, steps = 30;
  RecordingOptions recording;
};

constexpr std::chrono::minutes kRoundTimeout{30};

const char* name_of(Arm arm, const PeerEngine& engine) {
  switch (arm) {
    case Arm::Peer:
      return engine.title;
    case Arm::Tcp:
      return "TCP";
    case Arm::SharedMemory:
      return "shared memory";
  }
  return "";
}

/// Makes MPI's messages between ranks of one host go over TCP on the loopback device: in Open MPI, in MPICH.
const std::map<std::string, std::string> kOverTcp = {{"OMPI_MCA_pml", "ob1"},
                                                     {"OMPI_MCA_btl", "self,tcp"},
                                                     {"OMPI_MCA_btl_tcp_if_include", "lo"},
                                                     {"MPIR_CVAR_NOLOCAL", "1"}};

class StepComparison {
 public:
  StepComparison(const StepOptions& options, const PeerEngine& engine)
      : options_(options),
        engine_(engine),
        scripts_(python_side(options.python, "pipeline_steps.py", folder_.path())) {}

  /// The steps of all schedules of one model, in `options.rounds` rounds of all arms.
  std::vector<ScheduleSteps> of_model(const ModelShape& shape, const PlainGradients& plain) {
    std::vector<ScheduleSteps> compared;
    for (const std::string& schedule : options_.schedules) compared.push_back({.schedule = schedule});
    for (int round = 0; round < options_.rounds; ++round) {
      std::map<std::string, TensorMap> first;  // by schedule
      for (size_t turn = 0; turn < kArms.size(); ++turn) {
        const Arm arm = kArms[(turn + static_cast<size_t>(round)) % kArms.size()];
        const TemporaryFolder out(folder_.path());
        run(arm, shape, out.path());
        for (ScheduleSteps& steps : compared) {
          MeasuredSteps measured = read_steps(out.path(), steps.schedule, options_.ranks);
          if (const std::string why = plain.why_wrong(measured.gradients); !why.empty() && steps.wrong.empty())
            steps.wrong = std::string(name_of(arm, engine_)) + ": " + why;
          const TensorMap& others = first.try_emplace(steps.schedule, measured.gradients).first->second;
          steps.bits_equal = steps.bits_equal && measured.gradients == others;
          steps.seconds[static_cast<size_t>(arm)].push_back(std::move(measured.seconds));
          steps.processor[static_cast<size_t>(arm)].push_back(std::move(measured.cpu_seconds));
        }
        if (arm == Arm::Peer) version_ = read_file(out / "version");
      }
      std::fprintf(stderr, "%s: round %d of %d, load average %s\n", to_string(shape).c_str(), round + 1,
                   options_.rounds, load_average().c_str());
    }
    return compared;
  }

  /// What was measured beside plumbline: "torch 2.15.0".
  const std::string& version() const { return version_; }

 private:
  void run(Arm arm, const ModelShape& shape, const std::filesystem::path& out) const {
    const auto number = [](int value) { return std::to_string(value); };
    conformance::ProcessOptions process;
    process.environment = conformance::rank_environment();
    process.environment["OMP_NUM_THREADS"] = number(options_.threads);
    process.timeout = kRoundTimeout;
    if (arm == Arm::Peer)
      process.argv = {scripts_[0], scripts_[1], "--engine", engine_.name, "--ranks", number(options_.ranks)};
    else
      process.argv = {"mpirun", "-n", number(options_.ranks), cli::own_path(), "peers", "step-round"};
    if (arm == Arm::Tcp) process.environment.insert(kOverTcp.begin(), kOverTcp.end());
    for (const std::string& word : {std::string("--microbatches"), number(options_.microbatches),
                                    std::string("--threads"), number(options_.threads), std::string("--steps"),
                                    number(options_.steps), std::string("--out"), out.string(), to_string(shape)})
      process.argv.push_back(word);
    process.argv.insert(process.argv.end(), options_.schedules.begin(), options_.schedules.end());
    run_side(std::string(name_of(arm, engine_)) + "'s side", process, arm == Arm::Peer ? "--python: " : "",
             std::string("needs a Python with ") + engine_.package + ", such as that of scripts/peer " +
                 engine_.setup_arguments,
             out / (options_.schedules.back() + ".0.json"));
  }

  const StepOptions& options_;
  const PeerEngine& engine_;
  TemporaryFolder folder_;
  std::vector<std::string> scripts_;
  std::string version_;
};

/// The models of the command line, whose layers the stages of every schedule can share evenly.
std::vector<ModelShape> checked_models(const StepOptions& options) {
  std::vector<ModelShape> shapes;
  for (const std::string& text : options.models) {
    shapes.push_back(parse_model_shape(text));
    for (const std::string& name : options.schedules) {
      const int stages = schedule::make_schedule(name, options.ranks, options.microbatches).stages;
      if (shapes.back().layers % stages != 0)
        throw InputError("'" + text + "': " + name + " has " + std::to_string(stages) +
                         " stages on these ranks; the number of layers must be a multiple");
    }
  }
  return shapes;
}

void record(const ScheduleSteps& steps, const std::string& model, const StepOptions& options, Recording& recording) {
  // The first engine's history has no name in it.
  const std::string engine = options.engine == peer_engines().front().name ? "" : options.engine + "/";
  const std::string name =
      "peers/step/" + engine + steps.schedule + "/" + model + "/ranks:" + std::to_string(options.ranks) +
      "/microbatches:" + std::to_string(options.microbatches) + "/threads:" + std::to_string(options.threads);
  for (const auto& [arm, figure] :
       {std::pair(Arm::Peer, options.engine), {Arm::Tcp, "tcp"}, {Arm::SharedMemory, "shared_memory"}}) {
    recording.add(name, {.name = figure, .unit = "s", .samples = all_of(steps.seconds, arm)});
    recording.add(name, {.name = figure + "_cpu", .unit = "s", .samples = all_of(steps.processor, arm)});
    if (arm == Arm::Peer) continue;
    const std::string over = options.engine + "_over_" + figure;
    recording.add(name,
                  {.name = over, .unit = "1", .better = Better::Higher, .samples = peer_over(steps.seconds, arm)});
    recording.add(
        name,
        {.name = over + "_cpu", .unit = "1", .better = Better::Higher, .samples = peer_over(steps.processor, arm)});
  }
}

/// Those of the command line, which the engine must have, or all that it has.
std::vector<std::string> chosen_schedules(const StepOptions& options, const PeerEngine& engine) {
  for (const std::string& name : options.schedules)
    if (std::ranges::find(engine.schedules, name) == engine.schedules.end())
      throw InputError("--schedule: " + std::string(engine.title) + " has no '" + name + "'; expected one of " +
                       join(engine.schedules));
  return options.schedules.empty() ? engine.schedules : options.schedules;
}

int compare_steps(StepOptions options) {
  const PeerEngine& engine = peer_engine(options.engine);
  options.schedules = chosen_schedules(options, engine);
  const std::vector<ModelShape> shapes = checked_models(options);
  at::set_num_threads(options.threads);
  conformance::end_children_on_signals();
  Recording recording(options.recording);
  StepComparison comparison(options, engine);
  bool right = true;
  for (const ModelShape& shape : shapes) {
    PlainGradients plain(shape, options.microbatches);
    const std::vector<ScheduleSteps> compared = comparison.of_model(shape, plain);
    std::vector<double> alone;
    for (int i = 0; i < options.rounds; ++i) alone.push_back(plain.seconds());
    std::printf("%s; in one process without a pipeline %.2f ms\n%s\n", to_string(shape).c_str(), 1e3 * median(alone),
                to_table(compared, engine).c_str());
    std::fflush(stdout);
    for (const ScheduleSteps& steps : compared) {
      if (steps.wrong.empty())
        record(steps, to_string(shape), options, recording);
      else
        right = false;
    }
  }
  std::fputs(fairness_note(options.ranks, options.threads, options.microbatches, engine, comparison.version(),
                           run_here().machine.mpi)
                 .c_str(),
             stdout);
  recording.write();
  return right ? 0 : 1;
}

struct RoundOptions {
  PipelineRound round;
  std::string model, out;
  int threads = 1;
};

int run_round([[maybe_unused]] RoundOptions& options) {
#if PLUMBLINE_HAS_MPI
  transport::MpiSession mpi;
  try {
    at::set_num_threads(options.threads);
    options.round.model = parse_model_shape(options.model);
    const std::unique_ptr<transport::Transport> transport = transport::make_mpi_transport(mpi);
    run_pipeline_round(options.round, *transport, options.out);
  } catch (const std::exception& error) {
    mpi.abort(error.what());
  }
  return 0;
#else
  throw InputError("peers step: this plumbline was built without MPI");
#endif
}

/// For scripts: a line "NAME PEER VERSION" for each engine.
int print_engines() {
  for (const PeerEngine& engine : peer_engines()) std::printf("%s %s\n", engine.name, engine.setup_arguments);
  return 0;
}

void add_round(CLI::App& peers, cli::Command& chosen) {
  auto options = std::make_shared<RoundOptions>();
  CLI::App* command = peers.add_subcommand("step-round", "One rank of the C++ side of one round")->group("");
  command->add_option("--microbatches", options->round.microbatches)->required();
  command->add_option("--threads", options->threads)->required();
  command->add_option("--steps", options->round.steps)->required();
  command->add_option("--out", options->out)->required();
  command->add_option("model", options->model)->required();
  command->add_option("schedules", options->round.schedules)->required();
  command->callback([options, &chosen] { chosen = [options] { return run_round(*options); }; });
}

}  // namespace

void add_peers_step(CLI::App& peers, cli::Command& chosen) {
  auto options = std::make_shared<StepOptions>();
  CLI::App* command = peers.add_subcommand(
      "step",
      "Steps of pipelines, against another engine: every schedule that it has, the same model, ranks, threads and\n"
      "micro-batches; the engine over gloo, plumbline over MPI on TCP and on shared memory. Each round runs fresh\n"
      "processes of every arm in turns. The gradients after the last step must be those of the whole model without a\n"
      "pipeline, up to rounding: a schedule with a wrong one gets no numbers, and exit code 1.");
  add_python(*command, options->python, "A Python with torch and the engine, see scripts/peer");
  std::vector<std::string> engines, schedules;
  for (const PeerEngine& engine : peer_engines()) {
    engines.push_back(engine.name);
    for (const std::string& name : engine.schedules)
      if (std::ranges::find(schedules, name) == schedules.end()) schedules.push_back(name);
  }
  command->add_option("--engine", options->engine, "The other engine: " + join(engines))
      ->check(CLI::IsMember(engines).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  add_models(*command, options->models,
             "mlp:ROWS,LENGTH,WIDTH,LAYERS or transformer:..., with the rows of a micro-batch and the layers of "
             "the whole model; may be repeated. Default: tiny, medium and large stages");
  command
      ->add_option("--schedule", options->schedules,
                   "One of " + join(schedules) + "; may be repeated. Default: all that the engine has")
      ->check(CLI::IsMember(schedules).description(""))
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--ranks", options->ranks, "Number of ranks, each a process")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--microbatches", options->microbatches, "Number of micro-batches in a step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  add_threads(*command, options->threads, "Threads per rank, within the operators");
  add_rounds(*command, options->rounds, "Number of runs of each arm");
  command->add_option("--steps", options->steps, "Steps to measure in each run, after three to warm up")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_recording_options(*command, options->recording);
  command->callback([options, &chosen] { chosen = [options] { return compare_steps(*options); }; });
  add_round(peers, chosen);
  peers.add_subcommand("engines", "The engines of step, and how scripts/peer names them")
      ->group("")
      ->callback([&chosen] { chosen = print_engines; });
}

}  // namespace plumbline::bench
