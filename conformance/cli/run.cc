// plumbline run: runs cases under schedules and judges their results.
#include <cmath>

#include "conformance/cli/commands.h"
#include "conformance/cli/options/corpus_option.h"
#include "conformance/cli/options/named_runs.h"
#include "conformance/cli/options/one_of.h"
#include "conformance/cli/options/program_options.h"
#include "conformance/cli/options/seed_option.h"
#include "conformance/protocol/device_kind.h"
#include "conformance/run/hosts/launcher.h"
#include "runtime/engine/stage/recompute_options.h"
#include "runtime/error.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/transport/adverse_wire.h"
#include "runtime/transport/nccl/library_choice.h"

namespace plumbline::cli {

namespace {

/// The options of `run --program`; each requires it.
std::vector<CLI::Option*> add_program_options(CLI::App& command, program::ProgramOptions& program) {
  CLI::App* group = command.add_option_group("A program from Python (torch.export's .pt2)");
  add_step_options(*group, program, "Run one training step of this archive instead of cases");
  group
      ->add_option("--save-results", program.save_results,
                   "Write results.safetensors there: output.<m>.<i>, loss.<m>, grad.<name>, buffer.<name>")
      ->type_name("DIR");
  group->add_option("--expect", program.expect, "Compare the results with these, bit for bit")
      ->type_name("F.safetensors");
  group
      ->add_option("--recompute-blocks", program.recompute.blocks_in,
                   "What --recompute keeps the inputs of: each stage, or each module directly inside MODULE (as layers "
                   "holds layers.0): holds the inputs of all blocks and what autograd saves in one of them")
      ->type_name("stage|MODULE")
      ->default_str("stage");
  std::vector<CLI::Option*> only_with_program;
  for (CLI::Option* option : group->get_options())
    if (option->get_name() != "--program") only_with_program.push_back(option);
  return only_with_program;
}

/// Copies the options that both kinds of run take.
void take_common_options(const conformance::RunOptions& run, program::ProgramOptions& program) {
  take_step_options(run, program);
  if (run.selection.transport == conformance::TransportKind::Nccl)
    throw InputError("--transport: nccl is for cases so far; a program takes threads or mpi");
  program.mpi = run.selection.transport == conformance::TransportKind::Mpi;
  program.launcher = conformance::parse_launcher(run.launcher.empty() ? conformance::kLauncher : run.launcher);
  if (program.recompute.blocks_in == "stage") program.recompute.blocks_in.clear();
  if (!program.recompute.blocks_in.empty() && program.recompute.policy == engine::Recompute::Never)
    throw InputError("--recompute-blocks goes with --recompute except-last or always");
  program.device = run.device;
  program.timeout_seconds = run.timeout_seconds;
  if (!std::isfinite(program.timeout_seconds)) throw InputError("--timeout: it must be a number of seconds");
}

/// Ranks that a launcher starts are processes.
void take_launcher(conformance::RunOptions& options, bool own_runtime) {
  if (options.launcher.empty() || !own_runtime) return;
  if (options.selection.transport == conformance::TransportKind::Threads)
    throw InputError("--launcher: it starts processes, but --transport threads is given; leave out one of them");
  if (!options.selection.transport) options.selection.transport = conformance::TransportKind::Mpi;
}

}  // namespace

/// What --device cuda does not go with yet.
void check_device(const conformance::RunOptions& options, const std::string& backend) {
  if (options.device == "cpu") return;
  const auto refuse = [](const std::string& what) { throw InputError("--device cuda: " + what); };
  if (backend != conformance::kRuntime) refuse("goes with our own runtime only; leave out --backend");
  if (options.remat.on()) refuse("--remat partitions stages for the CPU only; leave it out");
  if (!options.wire.empty() &&
      (options.wire != "slow" || options.selection.transport_or_default() != conformance::TransportKind::Threads))
    refuse("--wire takes slow only, and ranks that are threads");
  if (options.throughput) refuse("--throughput measures on the CPU only; leave it out");
}

void add_run(CLI::App& app, Command& chosen, const Actions& actions) {
  auto request = std::make_shared<RunCommand>();
  conformance::RunOptions* const options = &request->options;
  auto named = std::make_shared<NamedRuns>();
  auto backend = std::make_shared<std::string>(conformance::kRuntime);
  auto program = std::make_shared<program::ProgramOptions>();
  CLI::App* command = app.add_subcommand("run",
                                         "Run cases under schedules and hold every result against the oracles.\n"
                                         "Prints failures as they come, each with the first stage, micro-batch and "
                                         "tensor that differ and the command that\n"
                                         "repeats just it, then why runs were unsupported, and the summary last. Also "
                                         "works as: mpirun -n 4 plumbline run");
  command
      ->add_option(
          "--profile", named->profile,
          "core: every case, under each kind of schedule, on 2, 4 and 8 ranks, over each transport, and "
          "every feature under every schedule, where no option says which; cases: each case at least once, and every "
          "feature under every schedule; nightly: all combinations; ranks: "
          "every feature and schedule on each of 1 to 8 ranks; smoke: "
          "a few, fast, on 4 ranks; a feature: the cases that have it (plumbline list --profiles)")
      ->capture_default_str();
  command
      ->add_option(
          "--case", options->selection.case_glob,
          "Only cases whose id matches this pattern (* and ?), of any profile; several with commas between; on 4 "
          "ranks as threads, where neither another option nor --profile says otherwise")
      ->type_name("GLOB,...");
  // Of a shell's variable that is not set.
  command->get_option("--case")->check(
      CLI::Validator([](const std::string& text) { return std::string(text.empty() ? "no pattern given" : ""); }, ""));
  add_corpus_option(*command, options->corpus);
  command
      ->add_option("--schedule", named->schedules,
                   "Only schedules whose name matches this pattern (`plumbline schedule --help` tells them apart), or "
                   "a schedule of your own from a file (mine.csv, in PyTorch's compute form); several with commas "
                   "between; for a program one of them (1f1b)")
      ->type_name("GLOB|FILE.csv,...")
      ->capture_default_str();
  command
      ->add_option(
          "--backend", *backend,
          "Who runs the cases: our own runtime; a program as a backend.toml says (conformance/INTERPRETING.md); "
          "or a command in quotes, which is started with the words describe, plan and run")
      ->type_name("runtime|FILE.toml|CMD")
      ->capture_default_str();
  std::map<std::string, conformance::TransportKind> transports;
  for (const std::string_view word : conformance::kTransportOptions)
    transports.emplace(word, conformance::transport_kind(word).value());
  command
      ->add_option(
          "--transport", named->transport,
          "threads: ranks are threads of one process; mpi: processes under mpirun; nccl: such processes, whose "
          "tensors travel over NCCL (docs/gpu.md)")
      ->transform(CLI::CheckedTransformer(transports).description(""))
      ->type_name(join(conformance::kTransportOptions, "|"))
      ->default_str("threads");
  command
      ->add_option("--device", options->device,
                   "Where the stages compute: on the CPU, or on CUDA devices, which the ranks take in turn; one device "
                   "is enough (docs/gpu.md). Same-order cases are then held to the same kernels on the same device")
      ->check(one_of(conformance::kDeviceWords))
      ->type_name(join(conformance::kDeviceWords, "|"))
      ->capture_default_str();
  command
      ->add_option("--nccl", options->nccl,
                   "For --transport nccl: the path or name of the library, or stub, with words: those of the stub "
                   "(rendezvous, eager, late, poison, shuffle, apart) make its worst cases happen, headers checks the "
                   "order of messages")
      ->type_name("LIBRARY[:WORD,...]")
      ->default_str(transport::nccl::LibraryChoice().library);
  command
      ->add_option("--launcher", options->launcher,
                   "What starts the ranks as processes, on several hosts for example, where {np} is their number; "
                   "implies --transport mpi. With --backend it replaces the launcher in the file")
      ->type_name("CMD")
      ->default_str(conformance::kLauncher);
  named
      ->add_ranks(
          *command, 4096,
          "How many ranks, several numbers with commas between; the schedule says how many stages each has (for "
          "a program one number; default: as many as its stages take)")
      ->default_str(std::to_string(conformance::kDefaultRanks));
  command
      ->add_option("--microbatches", options->microbatches,
                   "In place of each case's own number; for a program: what --inputs holds, else one a stage")
      ->check(CLI::Range(1, 65536));
  command->add_option("--mutant", options->mutant, "Put this fault in on purpose; `plumbline mutants` lists them")
      ->type_name("NAME");
  command
      ->add_option("--recompute", options->recompute,
                   "Micro-batches of which a stage keeps its inputs only, and runs its forward again in the backward: "
                   "costs one more forward, saves what autograd would hold from forward to backward; same bits")
      ->check(one_of(engine::kRecomputeWords))
      ->type_name(join(engine::kRecomputeWords, "|"))
      ->capture_default_str();
  CLI::Option* remat =
      command
          ->add_option(
              "--remat", options->remat.mode,
              "Partition each stage's joint graph of forward and backward: which values it saves, and which it "
              "computes again; same bits. X is between 0 (save inputs only) and 1")
          ->type_name("default|min-cut|aggressive|bytes|budget=X[:peak]");
  command
      ->add_option("--remat-policy", options->remat.policy,
                   "Whose rules --remat follows: seed, seed-nvfuser, torch-2.11, torch-2.15 or a file")
      ->type_name("P")
      ->needs(remat)
      ->capture_default_str();
  command
      ->add_option(
          "--wire", options->wire,
          "Make the transport worse on purpose: slow begins every send a random time later and reads its memory then, "
          "poison fills receive buffers with NaN until they are waited for, shuffle changes the order between "
          "pairs of ranks; a correct backend passes as before")
      ->type_name("slow,poison,shuffle");
  add_seed_option(*command, options->seed, "Of parameters, data and random layers");
  command->add_option("--timeout", options->timeout_seconds, "Seconds that one wait for a message may last")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command
      ->add_option("--report", options->report,
                   "Folder for matrix.html, matrix.svg, report.json, junit.xml and results/")
      ->capture_default_str();
  command
      ->add_option("--waivers", options->waivers,
                   "Failures that are known: which, why, where they are discussed and until when (docs/reports.md). An "
                   "expected failure is an xfail; a pass in its place fails unless the waiver is of a race, and so "
                   "does a waiver past its date")
      ->type_name("F.toml");
  command->add_flag("--resume", options->resume,
                    "Go on with the interrupted run in --report: what it judged stays; the same options, the same "
                    "build. Speed is measured anew");
  const std::map<std::string, conformance::Keep> whose = {{"all", conformance::Keep::All},
                                                          {"failures", conformance::Keep::Failures}};
  command
      ->add_option("--keep", options->keep,
                   "Whose results stay in the report: of all runs, or of failures only (those of a passing run are "
                   "deleted once judged; `plumbline check` then takes its verdict as recorded)")
      ->transform(CLI::CheckedTransformer(whose).description(""))
      ->type_name("all|failures")
      ->default_str("all");
  command->add_flag("-v,--verbose", options->verbose, "Print every verdict, and the whole matrix");
  command->add_flag("--list", request->list, "Print what would run, one run a line, and their number; run nothing");
  command->add_flag("--throughput", options->throughput,
                    "Measure the speed of a few schedules as well, or of those that --schedule names, as `plumbline "
                    "bench throughput` does; the output says where ranks share cores");
  const std::vector<CLI::Option*> only_with_program = add_program_options(*command, *program);
  const CLI::Option* chooser = command->get_option("--program");
  command->callback([=, execute = actions.run_cases, execute_program = actions.run_program, &chosen] {
    named->select(*command, options->selection);
    take_launcher(*options, *backend == conformance::kRuntime);
    transport::parse_wire(options->wire);
    transport::nccl::parse_library_choice(options->nccl);
    if (!options->nccl.empty() && options->selection.transport != conformance::TransportKind::Nccl)
      throw InputError("--nccl goes with --transport nccl, which is missing");
    check_device(*options, *backend);
    options->command_line = command_line();
    options->program = cli::program();
    if (remat->count() > 0)
      partition::parse_partition_mode(options->remat.mode);  // refuses an empty mode, which means "off" in RematOptions
    if (chooser->count() == 0) {
      for (const CLI::Option* option : only_with_program)
        if (option->count() > 0) throw InputError(option->get_name() + " goes with --program M.pt2, which is missing");
    } else {
      for (const char* name : {"--profile", "--case", "--corpus", "--mutant", "--report", "--waivers", "--resume",
                               "--wire", "--keep", "--verbose", "--list", "--throughput", "--backend"})
        if (command->count(name) > 0)
          throw InputError(std::string(name) + " is about cases; it does not go with --program");
      take_common_options(*options, *program);
      chosen = [=] { return execute_program(*program); };
      return;
    }
    if (std::isnan(options->timeout_seconds)) throw InputError("--timeout: it must be a number of seconds");
    options->backend = conformance::find_backend(*backend, own_path(), options->timeout_seconds);
    if (!options->backend.foreign && !options->nccl.empty()) options->backend.run_words = {"--nccl", options->nccl};
    if (!options->launcher.empty()) options->backend.launcher = conformance::parse_launcher(options->launcher);
    if (options->backend.foreign)
      for (const char* name : {"--transport", "--mutant", "--recompute", "--remat", "--throughput"})
        if (command->count(name) > 0)
          throw InputError(std::string(name) + " is about our own runtime; it does not go with --backend " + *backend);
    chosen = [=] { return execute(*request); };
  });
}

}  // namespace plumbline::cli
