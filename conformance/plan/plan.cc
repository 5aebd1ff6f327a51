#include "conformance/plan/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/corpus/features.h"
#include "conformance/corpus/smoke.h"
#include "conformance/plan/covering.h"
#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/text/counted.h"
#include "runtime/text/join.h"
#include "runtime/text/patterns.h"

namespace plumbline::conformance {
namespace {

/// Case, schedule, ranks and transport, as indices into Choices.
using Row = std::vector<int>;

/// One of each kind: whole backwards and halves, one stage a rank and two.
constexpr const char* kSmokeSchedules = "gpipe,1f1b,interleaved-1f1b,zb-v";

/// The combinations of which a profile without all rows has one run each (docs/corpus.md).
enum class Covers {
  EachCase,          ///< cases: each case once, features under schedules
  CasesUnderKinds,   ///< core: each case under each kind of schedule, on each number of ranks and over each transport
  SchedulesOnRanks,  ///< ranks: each schedule on 1 to 8 ranks
};

Covers covered_by(const std::string& profile) {
  if (profile == "cases") return Covers::EachCase;
  return profile == "ranks" ? Covers::SchedulesOnRanks : Covers::CasesUnderKinds;
}

bool trains(const reference::Case& c) {
  return std::find(c.steps.begin(), c.steps.end(), reference::StepKind::Train) != c.steps.end();
}

/// The number of ranks of the schedules if all come from files and it is the same; else 0.
int ranks_of_files(const std::vector<ChosenSchedule>& schedules) {
  std::set<size_t> ranks;
  for (const ChosenSchedule& chosen : schedules)
    ranks.insert(chosen.csv.empty() ? 0 : schedule::parse_csv(chosen.csv, chosen.name).ranks.size());
  return ranks.size() == 1 ? static_cast<int>(*ranks.begin()) : 0;
}

/// Removes "own" from patterns separated by commas; true where they held it, or choose everything.
bool take_own_schedule(std::string& patterns) {
  if (patterns == "*") return true;
  std::vector<std::string> others = split_at_commas(patterns);
  const bool found = std::erase(others, kOwnSchedule) > 0;
  patterns = join(others, ",");
  return found;
}

/// The kind of a schedule of one pipeline, on ranks of `replicas` pipelines: core runs each case under each kind that
/// it supports.
int kind_of(const schedule::Schedule& schedule, int replicas) {
  if (schedule.replicas() > replicas) return 3;
  for (const std::vector<schedule::Action>& rank : schedule.ranks)
    for (const schedule::Action& action : rank)
      if (action.type == schedule::ActionType::W) return 2;
  return schedule.stages > static_cast<int>(schedule.ranks.size()) ? 1 : 0;
}

/// The four factors of a run (cases, schedules, ranks, transports) and which of their combinations are supported.
class Choices {
 public:
  Choices(const RunOptions& options, ModelFacts& models, std::optional<int> processes)
      : options_(options), selection_(options.selection), models_(models) {
    const std::string profile_name = selection_.profile_or_default();
    const bool all_cases = selection_.case_glob.empty();
    const bool whole_profile = selection_.profile || (all_cases && options.mutant.empty());
    const bool spread = whole_profile && !processes && profile_name != "smoke";
    const bool all_rows = profile_name == "nightly" || profile_name == "smoke";
    pairs_only = (all_cases || selection_.profile) && !all_rows;
    covers_ = covered_by(profile_name);
    cases = all_cases ? profile(profile_name) : select(corpus(), selection_.case_glob);
    for (reference::Case& c : cases) {
      const int rows = least_rows(c);
      too_few_rows_.push_back(options.microbatches <= rows
                                  ? std::string()
                                  : std::to_string(rows) + " rows, too few for --microbatches " +
                                        std::to_string(options.microbatches));
      if (!too_few_rows_.back().empty()) continue;
      std::string note;
      c = with_microbatches(c, options.microbatches, note);
    }
    few_ = profile_name == "smoke" && all_cases && !selection_.schedules;
    std::string patterns = few_ ? kSmokeSchedules : selection_.schedules.value_or("*");
    const bool own = take_own_schedule(patterns) || few_;
    if (!patterns.empty()) schedules = choose_schedules(patterns);
    if (own && std::ranges::any_of(cases, [](const reference::Case& c) { return !c.schedule_csv.empty(); }))
      schedules.push_back({kOwnSchedule, ""});
    if (schedules.empty())
      throw InputError("--schedule: 'own' means the schedule that a case brings, and no such case is chosen");
    ranks = processes ? std::vector{*processes} : selection_.ranks;
    ranks_are_given_ = !ranks.empty();
    if (!ranks_are_given_) {
      ranks = {kDefaultRanks};
      if (const int own = ranks_of_files(schedules); own > 0) {
        ranks = {own};
      } else if (spread) {
        ranks = covers_ == Covers::SchedulesOnRanks ? std::vector{1, 2, 3, 4, 5, 6, 7, 8} : std::vector{2, 4, 8};
      }
    }
    ranks = ranks_of_backend(std::move(ranks), selection_, options_.backend);
    transports = {selection_.transport.value_or(processes ? TransportKind::Mpi : TransportKind::Threads)};
#if PLUMBLINE_HAS_MPI
    if (spread && !selection_.transport) transports = {TransportKind::Threads, TransportKind::Mpi};
#endif
  }

  /// Every combination, except where a case can never run under a schedule. A case runs under its own schedule once, on
  /// that schedule's number of ranks.
  std::vector<Row> rows() {
    std::vector<Row> rows;
    for (int c = 0; c < static_cast<int>(cases.size()); ++c)
      for (int s = 0; s < static_cast<int>(schedules.size()); ++s) {
        if (!is_possible(c, s) || (few_ && !is_smoke(cases[c].id, schedules[s].name))) continue;
        const int numbers = is_own({c, s}) ? 1 : static_cast<int>(ranks.size());
        for (int r = 0; r < numbers; ++r)
          for (int t = 0; t < static_cast<int>(transports.size()); ++t) rows.push_back({c, s, r, t});
      }
    return rows;
  }

  /// Why a row is unsupported; empty when it is supported.
  const std::string& why_not(const Row& row) {
    const auto [it, is_new] = reasons_.try_emplace({row[0], row[1], row[2]});
    if (is_new && !too_few_rows_[row[0]].empty()) {
      it->second = too_few_rows_[row[0]];
    } else if (is_new && (is_own(row) || !cases[row[0]].schedule_csv.empty())) {
      it->second = why_not_own(row);
    } else if (is_new) {
      const auto& [schedule, refusal] = schedule_for(row[1], ranks[row[2]], cases[row[0]]);
      it->second = refusal.empty() ? why_unsupported(cases[row[0]], schedule, models_, options_.remat) : refusal;
    }
    return it->second;
  }

  PlannedRun run(const Row& row) {
    const ChosenSchedule& schedule = schedules[row[1]];
    RunId id{cases[row[0]].id, schedule.name, ranks[row[2]], transport_name(transports[row[3]])};
    if (!is_own(row)) return {id, schedule.csv, why_not(row)};
    const std::string& csv = cases[row[0]].schedule_csv;
    if (!csv.empty()) id.ranks = static_cast<int>(std::ranges::count(csv, '\n'));
    return {id, csv, why_not(row)};
  }

  /// What this row covers for the profile, one word each.
  std::vector<std::string> shown_by(const Row& row) {
    const std::string c = "case " + cases[row[0]].id, s = "schedule " + schedules[row[1]].name;
    const std::string r = "ranks " + std::to_string(run(row).id.ranks);
    const std::string t = transport_name(transports[row[3]]);
    std::vector<std::string> words = {s + r};
    switch (covers_) {
      case Covers::EachCase:
        words.insert(words.end(), {s + t, c, r + t});
        break;
      case Covers::SchedulesOnRanks:
        words.push_back(r + t);
        break;
      case Covers::CasesUnderKinds:
        words.insert(words.end(), {s + t, c + r, c + t});
        if (!is_own(row))
          words.push_back(c + "kind " +
                          std::to_string(kind_of(schedule_for(row[1], ranks[row[2]], cases[row[0]]).first,
                                                 cases[row[0]].replicas)));
        break;
    }
    for (const std::string& feature : features_of(cases[row[0]]))
      words.push_back(feature + " " + (covers_ == Covers::SchedulesOnRanks ? r : s));
    return words;
  }

  bool pairs_only;
  std::vector<reference::Case> cases;
  std::vector<ChosenSchedule> schedules;
  std::vector<int> ranks;
  std::vector<TransportKind> transports;

 private:
  using Made = std::pair<schedule::Schedule, std::string>;  ///< the schedule, or why it does not exist

  bool is_own(const Row& row) const { return schedules[row[1]].name == kOwnSchedule; }

  /// Whether the case may run under the schedule on some number of ranks.
  bool is_possible(int c, int s) {
    const bool has_own = !cases[c].schedule_csv.empty();
    if (has_own || is_own({c, s})) return has_own && is_own({c, s});
    return std::ranges::all_of(ranks, [&](int n) {
      const auto& [schedule, refusal] = schedule_for(s, n, cases[c]);
      return !refusal.empty() || why_never(cases[c], schedule, models_).empty();
    });
  }

  /// For a case with its own schedule, or a row under "own".
  std::string why_not_own(const Row& row) const {
    const reference::Case& c = cases[row[0]];
    if (c.schedule_csv.empty()) return "it has no schedule of its own";
    if (!is_own(row)) return "it has a schedule of its own, which must be followed (--schedule own)";
    const auto own_ranks = static_cast<int>(std::ranges::count(c.schedule_csv, '\n'));
    if (ranks_are_given_ && std::ranges::find(ranks, own_ranks) == ranks.end())
      return "its own schedule is for " + std::to_string(own_ranks) + " ranks, not " + numbers_text(ranks);
    if (!options_.backend.ranks.empty() &&
        std::ranges::find(options_.backend.ranks, own_ranks) == options_.backend.ranks.end())
      return "its own schedule is for " + std::to_string(own_ranks) + " ranks, which the backend does not take";
    try {
      return why_unsupported(c, case_schedule(c, ChosenSchedule{kOwnSchedule, c.schedule_csv}, own_ranks), models_,
                             options_.remat);
    } catch (const InputError& error) {
      return error.what();
    }
  }

  const Made& schedule_for(int index, int rank_count, const reference::Case& c) {
    const auto [it, is_new] = made_.try_emplace({index, rank_count, c.microbatches, c.replicas});
    if (is_new) {
      try {
        it->second.first = case_schedule(c, schedules[index], rank_count);
      } catch (const InputError& error) {
        it->second.second = error.what();
      }
    }
    return it->second;
  }

  const RunOptions& options_;
  const Selection& selection_;
  ModelFacts& models_;
  Covers covers_ = Covers::CasesUnderKinds;
  bool ranks_are_given_ = false;
  bool few_ = false;                       ///< the profile `smoke` as it is
  std::vector<std::string> too_few_rows_;  ///< by case: empty, or why it has too few rows for the micro-batches
  std::map<std::tuple<int, int, int, int>, Made> made_;  ///< by schedule, ranks, micro-batches and replicas
  std::map<std::tuple<int, int, int>, std::string> reasons_;
};

/// Rows that cover all pairs; and one for each case and schedule without a supported row, which has the reason.
std::vector<Row> rows_for_pairs(Choices& choices) {
  std::map<std::string, int> numbers;
  std::vector<Row> possible;
  std::vector<std::vector<int>> shows;
  std::vector<int> schedules;
  std::map<std::pair<int, int>, Row> unsupported;  // by case and schedule; the first row has the reason
  for (Row& row : choices.rows())
    if (!choices.why_not(row).empty()) unsupported.try_emplace({row[0], row[1]}, row);
  for (Row& row : choices.rows()) {
    if (!choices.why_not(row).empty()) continue;
    unsupported.erase({row[0], row[1]});
    std::vector<int>& shown = shows.emplace_back();
    for (const std::string& word : choices.shown_by(row))
      shown.push_back(numbers.try_emplace(word, static_cast<int>(numbers.size())).first->second);
    schedules.push_back(row[1]);
    possible.push_back(std::move(row));
  }
  std::vector<Row> rows;
  for (const int i : covering_rows(shows, schedules)) rows.push_back(possible[i]);
  for (auto& [pair, row] : unsupported) rows.push_back(std::move(row));
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<RunGroup> group(const RunOptions& options, const std::vector<PlannedRun>& runs) {
  std::map<std::pair<int, TransportKind>, RunGroup> groups;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].unsupported.empty()) continue;
    const TransportKind transport = transport_kind(runs[i].id.transport).value();
    const auto [it, is_new] = groups.try_emplace({runs[i].id.ranks, transport});
    if (is_new) it->second = {transport, empty_job(options, runs[i].id.ranks), {}};
    it->second.job.cases.push_back(job_case(runs[i]));
    it->second.runs.push_back(i);
  }
  std::vector<RunGroup> all;
  for (auto& [key, one] : groups) all.push_back(std::move(one));
  return all;
}

[[noreturn]] void refuse(const PlannedRun& run) {
  throw InputError("nothing to run: " + run.id.case_id + " x " + run.id.schedule + " on " +
                   counted(run.id.ranks, "rank") + ": " + run.unsupported);
}

/// A file that the user named is refused when no case can run under it: it may be broken, which "unsupported" would
/// hide.
void require_a_run(const std::vector<PlannedRun>& runs, const std::string& file) {
  const PlannedRun* first = nullptr;
  for (const PlannedRun& run : runs) {
    if (run.id.schedule != file) continue;
    if (run.unsupported.empty()) return;
    if (!first) first = &run;
  }
  if (first) refuse(*first);
}

}  // namespace

std::string numbers_text(const std::vector<int>& numbers, std::string_view separator) {
  std::vector<std::string> texts;
  for (const int n : numbers) texts.push_back(std::to_string(n));
  return join(texts, separator);
}

Job empty_job(const RunOptions& options, int ranks) {
  Job job;
  job.ranks = ranks;
  job.seed = options.seed;
  job.timeout_seconds = options.timeout_seconds;
  job.microbatches = options.microbatches;
  job.mutant = options.mutant;
  job.recompute = options.recompute;
  job.remat = options.remat.mode;
  job.remat_policy = options.remat.policy;
  job.wire = options.wire;
  job.device = options.device;
  if (!options.corpus.empty() && !options.backend.foreign)
    job.corpus = std::filesystem::absolute(ReportFolder(options.report).corpus()).string();
  return job;
}

std::vector<int> ranks_of_backend(std::vector<int> wanted, const Selection& selection, const BackendSpec& backend) {
  if (backend.ranks.empty()) return wanted;
  const auto is_missing = [&](int n) { return std::ranges::find(backend.ranks, n) == backend.ranks.end(); };
  if (const auto named = std::ranges::find_if(selection.ranks, is_missing); named != selection.ranks.end())
    throw InputError("--ranks: " + std::to_string(*named) + " given; the backend's file says " +
                     numbers_text(backend.ranks));
  std::erase_if(wanted, is_missing);
  if (!wanted.empty()) return wanted;
  return {backend.ranks.back()};
}

std::string why_never(const reference::Case& c, const schedule::Schedule& schedule, ModelFacts& models) {
  if (trains(c) && !schedule::has_backward(schedule)) return "it trains, and the schedule has no backward";
  if (trains(c) && schedule.replicas() > 1 && models.has_buffers(c))
    return "its forward writes buffers, and the schedule has " + std::to_string(schedule.replicas()) +
           " replicas of the model, each with its own";
  if (c.whole_gradients && schedule.replicas() > 1)
    return "it reads gradients of whole inputs, and the schedule has " + std::to_string(schedule.replicas()) +
           " replicas of the model, each with those of its own micro-batches";
  return {};
}

std::string why_unsupported(const reference::Case& c, const schedule::Schedule& schedule, ModelFacts& models,
                            const engine::RematOptions& remat) {
  if (std::string never = why_never(c, schedule, models); !never.empty()) return never;
  const int most_stages = models.most_stages(c.model, c.dtype);
  if (schedule.stages > most_stages)
    return std::to_string(most_stages - 1) + " split points, enough for " + std::to_string(most_stages) +
           " stages; the schedule has " + std::to_string(schedule.stages);
  if (schedule::has_communication(schedule)) {
    const std::vector<std::string> problems = schedule::violations(
        schedule, models.edges(c, schedule.stages), {.forward_only = !schedule::has_backward(schedule), .limit = 1});
    if (!problems.empty()) return problems.front();
  }
  if (c.replicas > 1) {
    const schedule::Schedule shared = with_replica_actions(schedule, replica_options(c));
    const std::vector<std::string> problems = schedule::violations(
        shared, models.edges(c, schedule.stages), {.forward_only = !schedule::has_backward(schedule), .limit = 1});
    if (!problems.empty()) return problems.front();
  }
  return remat.on() && trains(c) ? models.why_not_partitioned(c, schedule.stages, remat) : "";
}

RunPlan make_plan(const RunOptions& options, ModelFacts& models, std::optional<int> processes) {
  for (const int ranks : options.selection.ranks)
    if (ranks < 1) throw InputError("--ranks: " + std::to_string(ranks) + " given; 1 or more are needed");
  if (options.microbatches < 0)
    throw InputError("--microbatches: " + std::to_string(options.microbatches) + " given; 1 or more are needed");
  engine::check_remat(options.remat, options.recompute != "never");
  Choices choices(options, models, processes);
  if (options.mutant_ranks > choices.ranks.front())
    throw InputError("--mutant: " + options.mutant + " needs " + std::to_string(options.mutant_ranks) +
                     " ranks or more");
  for (const reference::Case& c : choices.cases) models.require_loss(c);
  RunPlan plan;
  for (const Row& row : choices.pairs_only ? rows_for_pairs(choices) : choices.rows())
    plan.runs.push_back(choices.run(row));
  plan.groups = group(options, plan.runs);
  if (plan.groups.empty()) refuse(plan.runs.empty() ? choices.run({0, 0, 0, 0}) : plan.runs.front());
  for (const ChosenSchedule& schedule : choices.schedules)
    if (!schedule.csv.empty()) require_a_run(plan.runs, schedule.name);
  plan.schedules = std::move(choices.schedules);
  return plan;
}

}  // namespace plumbline::conformance
