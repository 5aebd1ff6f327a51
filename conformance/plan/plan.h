// The plan of a run: which cases run under which schedules, on how many ranks, over which transport; and which of these
// are unsupported, known before anything starts. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/plan/model_facts.h"
#include "conformance/plan/planned_run.h"
#include "conformance/protocol/command/backend_file.h"
#include "conformance/protocol/job.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "conformance/protocol/transport_kind.h"
#include "reference/case.h"
#include "runtime/engine/stage/remat_options.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// Which runs the user asked for; make_plan() chooses the rest.
struct Selection {
  std::optional<std::string> profile;
  std::string case_glob;                 ///< patterns, see select(); empty: the whole profile
  std::optional<std::string> schedules;  ///< patterns and .csv files, see choose_schedules()
  std::optional<TransportKind> transport;
  std::vector<int> ranks;  ///< ascending, each once; empty: not named

  /// Defaults: core, threads.
  std::string profile_or_default() const { return profile.value_or("core"); }
  TransportKind transport_or_default() const { return transport.value_or(TransportKind::Threads); }
};

/// Where neither the user nor a profile determines the number.
inline constexpr int kDefaultRanks = 4;

/// "2, 4, 8"
std::string numbers_text(const std::vector<int>& numbers, std::string_view separator = ", ");

/// The runs whose results stay in the report folder.
enum class Keep { All, Failures };

struct RunOptions {
  Selection selection;
  int microbatches = 0;             ///< 0: each case's own
  std::string mutant;               ///< its name; empty: none
  int mutant_ranks = 1;             ///< the least number of ranks that the mutant needs
  std::string recompute = "never";  ///< see parse_recompute()
  engine::RematOptions remat;
  std::string wire;            ///< words of transport::parse_wire(); empty: an ordinary wire
  std::string device = "cpu";  ///< where the ranks compute; or "cuda"
  std::string nccl;            ///< for transport::nccl::parse_library_choice()
  std::string nccl_library;    ///< the name of the library that was found; empty without this transport
  uint64_t seed = 1;
  double timeout_seconds = 60;
  bool throughput = false;  ///< measure the speed of schedules as well
  BackendSpec backend;
  std::string launcher;                 ///< the option, parsed into `backend`; empty: not given
  std::vector<std::string> started_by;  ///< the command of the launcher that started this process; empty: none did
  std::filesystem::path corpus;         ///< the user's folder of cases, to be added (corpus.h); empty: none
  std::filesystem::path report = "plumbline-report";
  bool resume = false;            ///< continue the interrupted run in `report`
  std::filesystem::path waivers;  ///< empty: nothing is waived
  Keep keep = Keep::All;
  bool verbose = false;               ///< print every verdict
  std::string program = "plumbline";  ///< as it was called
  std::string command_line;           ///< for the report
};

/// The runs that one launch of ranks executes.
struct RunGroup {
  TransportKind transport = TransportKind::Threads;
  Job job;
  std::vector<size_t> runs;  ///< for each case of the job, its index in RunPlan::runs
};

struct RunPlan {
  /// By case, schedule, ranks and transport, in the order of the corpus and of the table of schedules.
  std::vector<PlannedRun> runs;
  std::vector<RunGroup> groups;           ///< by ranks and transport
  std::vector<ChosenSchedule> schedules;  ///< of all runs; a case's own is named kOwnSchedule
};

/// The job of a group that has no cases yet.
Job empty_job(const RunOptions& options, int ranks);

/// A case that has a schedule of its own runs under that alone, named "own", on as many ranks as it has. Another case
/// is not planned under a schedule that it can never take (why_never()). Any other run that is not possible is planned,
/// with the reason.
///
/// If the user names schedules, numbers of ranks or a transport, only those are taken. Schedules from files that all
/// have the same number of ranks run on that. Otherwise a profile (named, or core because neither case nor mutant is)
/// runs on 2, 4 and 8 ranks (the profile ranks: on 1 to 8), as threads and over MPI where there is MPI; smoke, and runs
/// without a profile, are on 4 ranks as threads.
///
/// smoke has its own few runs (smoke.h); with schedules that the user names, every case of it under these. nightly, and
/// cases that the user names without a profile, run in all combinations. All else runs rows (covering.h) that cover
/// every possible pair of some kinds (docs/corpus.md). In core these are a feature of cases (features.h) with a
/// schedule; a case with a kind of schedule (one stage a rank, several, backwards in halves, several replicas), with a
/// number of ranks, with a transport; a schedule with a number of ranks, with a transport.
///
/// `processes`: how many processes mpirun has started; everything runs on them, over MPI if no transport is named.
///
/// Throws InputError for an unknown case, schedule or profile, for numbers out of range, for a case whose loss does not
/// fit its model, and, with the reason, when nothing that was asked for is supported, or nothing under a schedule from
/// a file.
RunPlan make_plan(const RunOptions& options, ModelFacts& models, std::optional<int> processes = {});

/// The numbers of ranks among `wanted` that the backend supports, or else its largest. Throws InputError where it does
/// not support one that the user named.
std::vector<int> ranks_of_backend(std::vector<int> wanted, const Selection& selection, const BackendSpec& backend);

/// Why `c` cannot run under a schedule of this kind, on whatever number of ranks, in one line; empty when it may: it
/// trains and the schedule has no backward, or it writes buffers or reads gradients of whole inputs and the schedule
/// has several replicas of the model.
std::string why_never(const reference::Case& c, const schedule::Schedule& schedule, ModelFacts& models);

/// Why `c` cannot run under `schedule`, in one line; empty when it can: why_never(), its model has too few split
/// points, the transfers in the schedule are not those that its stages need, or its stages cannot be partitioned by
/// `remat`.
std::string why_unsupported(const reference::Case& c, const schedule::Schedule& schedule, ModelFacts& models,
                            const engine::RematOptions& remat = {});

}  // namespace plumbline::conformance
