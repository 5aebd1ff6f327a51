#include "conformance/plan/plan.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <tuple>

#include "conformance/corpus/case_pipe.h"
#include "conformance/corpus/corpus.h"
#include "conformance/corpus/features.h"
#include "conformance/judge/judge.h"
#include "conformance/mutants/mutants.h"
#include "conformance/plan/covering.h"
#include "conformance/plan/remat.h"
#include "conformance/protocol/chosen_schedule.h"
#include "reference/models/zoo.h"
#include "runtime/engine/plan/plan.h"
#include "runtime/error.h"
#include "runtime/join.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/orders/generators.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::conformance {
namespace {

/// Case, schedule, ranks and transport, by number.
using Row = std::vector<int>;

/// One of each kind: whole backwards and halves, one stage a rank and two.
constexpr const char* kSmokeSchedules = "gpipe,1f1b,interleaved-1f1b,zb-v";
/// What is measured where the user named no schedule.
constexpr const char* kMeasuredSchedules[] = {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v"};

/// What a case asks of a schedule.
struct CaseNeeds {
  int most_stages = 1;
  bool has_buffers = false, trains = false;
};

CaseNeeds needs_of(const reference::Case& c, uint64_t seed) {
  const models::Model model = models::make_model(c.model, c.dtype, seed);
  return {most_stages(model), !model.module->buffers().empty(),
          std::find(c.steps.begin(), c.steps.end(), reference::StepKind::Train) != c.steps.end()};
}

/// Which stages hand values to which, as the model of a case is cut.
std::vector<schedule::StageEdge> edges_of(const reference::Case& c, int stages, uint64_t seed) {
  return engine::stage_edges(case_pipe(c, models::make_model(c.model, c.dtype, seed), stages, seed));
}

std::string why_unsupported(const reference::Case& c, const CaseNeeds& needs, const schedule::Schedule& schedule,
                            uint64_t seed) {
  if (schedule.stages > needs.most_stages)
    return std::to_string(needs.most_stages - 1) + " split points, enough for " + std::to_string(needs.most_stages) +
           " stages; the schedule has " + std::to_string(schedule.stages);
  if (needs.trains && !schedule::has_backward(schedule)) return "it trains, and the schedule has no backward";
  if (needs.trains && needs.has_buffers && schedule.replicas() > 1)
    return "its forward writes buffers, and the schedule has " + std::to_string(schedule.replicas()) +
           " replicas of the model, each with its own";
  if (!schedule::has_communication(schedule)) return {};
  const std::vector<std::string> problems = schedule::violations(
      schedule, edges_of(c, schedule.stages, seed), {.forward_only = !schedule::has_backward(schedule), .limit = 1});
  return problems.empty() ? "" : problems.front();
}

/// How many ranks the schedules are for, if all come from files and for as many; else 0.
int ranks_of_files(const std::vector<ChosenSchedule>& schedules) {
  std::set<size_t> ranks;
  for (const ChosenSchedule& chosen : schedules)
    ranks.insert(chosen.csv.empty() ? 0 : schedule::parse_csv(chosen.csv, chosen.name).ranks.size());
  return ranks.size() == 1 ? static_cast<int>(*ranks.begin()) : 0;
}

/// Takes "own" out of patterns separated by commas; true where it stood there, or where everything is meant.
bool take_own_schedule(std::string& patterns) {
  if (patterns == "*") return true;
  std::vector<std::string> others;
  bool found = false;
  for (const auto& part : std::views::split(patterns, ',')) {
    const std::string pattern(part.begin(), part.end());
    if (pattern == kOwnSchedule)
      found = true;
    else
      others.push_back(pattern);
  }
  patterns = others.empty() ? "" : others.front();
  for (size_t i = 1; i < others.size(); ++i) patterns += "," + others[i];
  return found;
}

/// Of which kind a schedule is: cases meet each kind that they can.
int kind_of(const schedule::Schedule& schedule) {
  if (schedule.replicas() > 1) return 3;
  for (const std::vector<schedule::Action>& rank : schedule.ranks)
    for (const schedule::Action& action : rank)
      if (action.type == schedule::ActionType::W) return 2;
  return schedule.stages > static_cast<int>(schedule.ranks.size()) ? 1 : 0;
}

/// Everything that a run could consist of; the values of the four factors by number.
class Choices {
 public:
  explicit Choices(const RunOptions& options, bool one_group) : options_(options) {
    const bool whole_profile = options.profile_given || (options.case_glob.empty() && options.mutant.empty());
    const bool spread = whole_profile && !one_group && options.profile != "smoke";
    const bool is_full = options.profile == "nightly" || options.profile == "full";
    pairs_only = (options.case_glob.empty() || options.profile_given) && !is_full && options.profile != "smoke";
    whole = spread;
    every_rank = options.profile == "ranks";
    cases = options.case_glob.empty() ? profile(options.profile) : select(corpus(), options.case_glob);
    for (reference::Case& c : cases) {
      too_few_rows_.push_back(options.microbatches <= c.rows
                                  ? std::string()
                                  : std::to_string(c.rows) + " rows, too few for --microbatches " +
                                        std::to_string(options.microbatches));
      if (!too_few_rows_.back().empty()) {
        needs_.emplace_back();
        continue;
      }
      std::string note;
      c = with_microbatches(c, options.microbatches, note);
      needs_.push_back(needs_of(c, options.seed));
    }
    const bool few = options.profile == "smoke" && options.case_glob.empty() && !options.schedule_given;
    std::string patterns = few ? kSmokeSchedules : options.schedules;
    const bool own = take_own_schedule(patterns) || few;
    if (!patterns.empty()) schedules = choose_schedules(patterns);
    if (own && std::ranges::any_of(cases, [](const reference::Case& c) { return !c.schedule_csv.empty(); }))
      schedules.push_back({kOwnSchedule, ""});
    if (schedules.empty())
      throw InputError("--schedule: 'own' means the schedule that a case brings, and no such case is chosen");
    ranks = {options.ranks};
    if (!options.ranks_given && !one_group) {
      if (const int own = ranks_of_files(schedules); own > 0) {
        ranks = {own};
      } else if (spread) {
        ranks = every_rank ? std::vector{1, 2, 3, 4, 5, 6, 7, 8} : std::vector{2, 4, 8};
      }
    }
    keep_ranks_of_backend();
    transports = {options.transport};
#if PLUMBLINE_HAS_MPI
    if (spread && !options.transport_given && options.transport != TransportKind::Own)
      transports = {TransportKind::Threads, TransportKind::Mpi};
#endif
  }

  std::vector<int> sizes() const {
    return {static_cast<int>(cases.size()), static_cast<int>(schedules.size()), static_cast<int>(ranks.size()),
            static_cast<int>(transports.size())};
  }

  /// Why a row cannot be; empty when it can.
  const std::string& why_not(const Row& row) {
    const auto [it, is_new] = reasons_.try_emplace({row[0], row[1], row[2]});
    if (is_new && !too_few_rows_[row[0]].empty()) {
      it->second = too_few_rows_[row[0]];
    } else if (is_new && (is_own(row) || !cases[row[0]].schedule_csv.empty())) {
      it->second = why_not_own(row);
    } else if (is_new) {
      const auto& [schedule, refusal] = schedule_for(row[1], ranks[row[2]], cases[row[0]].microbatches);
      it->second = refusal.empty() ? why_unsupported(cases[row[0]], needs_[row[0]], schedule, options_.seed) : refusal;
      if (it->second.empty() && options_.remat.on() && needs_[row[0]].trains)
        it->second = why_not_partitioned(row[0], schedule.stages);
    }
    return it->second;
  }

  PlannedRun run(const Row& row) {
    const ChosenSchedule& schedule = schedules[row[1]];
    if (!is_own(row))
      return {{cases[row[0]].id, schedule.name, schedule.csv}, ranks[row[2]], transports[row[3]], why_not(row)};
    const std::string& csv = cases[row[0]].schedule_csv;
    const int own_ranks = csv.empty() ? ranks[row[2]] : static_cast<int>(std::ranges::count(csv, '\n'));
    return {{cases[row[0]].id, schedule.name, csv}, own_ranks, transports[row[3]], why_not(row)};
  }

  /// What core, or the profile of all numbers of ranks, has to show with such a row, one word each.
  std::vector<std::string> shown_by(const Row& row) {
    const std::string c = "case " + cases[row[0]].id, s = "schedule " + schedules[row[1]].name;
    const std::string r = "ranks " + std::to_string(every_rank ? run(row).ranks : ranks[row[2]]);
    const std::string t = transport_name(transports[row[3]]);
    if (every_rank) {
      std::vector<std::string> words = {s + r, r + t};
      for (const std::string& feature : features_of(cases[row[0]])) words.push_back(feature + " " + r);
      return words;
    }
    std::vector<std::string> words = {c + r, c + t, s + r, s + t};
    if (!is_own(row))
      words.push_back(c + "kind " +
                      std::to_string(kind_of(schedule_for(row[1], ranks[row[2]], cases[row[0]].microbatches).first)));
    for (const std::string& feature : features_of(cases[row[0]])) words.push_back(feature + " " + s);
    return words;
  }

  /// Under a schedule of its own a case runs once, on its own number of ranks, and no other case does.
  bool is_meant(const Row& row) const {
    return is_own(row) == !cases[row[0]].schedule_csv.empty() && (!is_own(row) || row[2] == 0);
  }

  bool pairs_only;
  bool whole;               ///< a whole profile: what is not meant is not worth a word
  bool every_rank = false;  ///< the profile of all numbers of ranks
  std::vector<reference::Case> cases;
  std::vector<ChosenSchedule> schedules;
  std::vector<int> ranks;
  std::vector<TransportKind> transports;

 private:
  using Made = std::pair<schedule::Schedule, std::string>;  ///< the schedule, or why there is none

  void keep_ranks_of_backend() {
    const std::vector<int>& can = options_.backend_ranks;
    if (can.empty()) return;
    std::erase_if(ranks, [&](int n) { return std::ranges::find(can, n) == can.end(); });
    if (!ranks.empty()) return;
    if (options_.ranks_given) {
      std::vector<std::string> numbers;
      for (const int n : can) numbers.push_back(std::to_string(n));
      throw InputError("--ranks: " + std::to_string(options_.ranks) + " given; the backend's file says " +
                       join(numbers));
    }
    ranks = {can.back()};
  }

  bool is_own(const Row& row) const { return schedules[row[1]].name == kOwnSchedule; }

  /// Of a case with a schedule of its own, or of a row under "own".
  std::string why_not_own(const Row& row) const {
    const reference::Case& c = cases[row[0]];
    if (c.schedule_csv.empty()) return "it has no schedule of its own";
    if (!is_own(row)) return "it has a schedule of its own, which must be followed (--schedule own)";
    const auto own_ranks = static_cast<int>(std::ranges::count(c.schedule_csv, '\n'));
    if (options_.ranks_given && ranks[row[2]] != own_ranks)
      return "its own schedule is for " + std::to_string(own_ranks) + " ranks, not " + std::to_string(ranks[row[2]]);
    if (!options_.backend_ranks.empty() &&
        std::ranges::find(options_.backend_ranks, own_ranks) == options_.backend_ranks.end())
      return "its own schedule is for " + std::to_string(own_ranks) + " ranks, which the backend does not take";
    if (row[2] > 0) return "its own schedule is for " + std::to_string(own_ranks) + " ranks only";
    try {
      return why_unsupported(c, needs_[row[0]],
                             make_schedule(ChosenSchedule{kOwnSchedule, c.schedule_csv}, own_ranks, c.microbatches),
                             options_.seed);
    } catch (const InputError& error) {
      return error.what();
    }
  }

  const Made& schedule_for(int index, int rank_count, int microbatches) {
    const auto [it, is_new] = made_.try_emplace({index, rank_count, microbatches});
    if (is_new) {
      try {
        it->second.first = make_schedule(schedules[index], rank_count, microbatches);
      } catch (const InputError& error) {
        it->second.second = error.what();
      }
    }
    return it->second;
  }

  const std::string& why_not_partitioned(int index, int stages) {
    const auto [it, is_new] = not_partitioned_.try_emplace({index, stages});
    if (is_new)
      it->second = plumbline::conformance::why_not_partitioned(cases[index], stages, options_.seed, options_.remat);
    return it->second;
  }

  const RunOptions& options_;
  std::vector<std::string> too_few_rows_;  ///< by case: empty, or why there are not so many micro-batches
  std::vector<CaseNeeds> needs_;
  std::map<std::tuple<int, int, int>, Made> made_;
  std::map<std::tuple<int, int, int>, std::string> reasons_;
  std::map<std::pair<int, int>, std::string> not_partitioned_;  // by case and stages
};

std::vector<Row> every_row(const std::vector<int>& sizes) {
  std::vector<Row> rows;
  for (int c = 0; c < sizes[0]; ++c)
    for (int s = 0; s < sizes[1]; ++s)
      for (int r = 0; r < sizes[2]; ++r)
        for (int t = 0; t < sizes[3]; ++t) rows.push_back({c, s, r, t});
  return rows;
}

/// Rows for all that core has to show; and one for each case and schedule that never come together, to say why.
std::vector<Row> rows_for_pairs(Choices& choices) {
  const std::vector<int> sizes = choices.sizes();
  std::map<std::string, int> numbers;
  std::vector<Row> possible;
  std::vector<std::vector<int>> shows;
  std::vector<int> schedules;
  std::vector<std::vector<bool>> together(sizes[0], std::vector<bool>(sizes[1]));
  for (Row& row : every_row(sizes)) {
    if (!choices.why_not(row).empty()) continue;
    together[row[0]][row[1]] = true;
    std::vector<int>& shown = shows.emplace_back();
    for (const std::string& word : choices.shown_by(row))
      shown.push_back(numbers.try_emplace(word, static_cast<int>(numbers.size())).first->second);
    schedules.push_back(row[1]);
    possible.push_back(std::move(row));
  }
  std::vector<Row> rows;
  for (const int i : covering_rows(shows, schedules)) rows.push_back(possible[i]);
  for (int c = 0; c < sizes[0]; ++c)
    for (int s = 0; s < sizes[1]; ++s)
      if (!together[c][s] && (!choices.whole || choices.is_meant({c, s, 0, 0}))) rows.push_back({c, s, 0, 0});
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<RunGroup> group(const RunOptions& options, const std::vector<PlannedRun>& runs) {
  std::map<std::pair<int, TransportKind>, RunGroup> groups;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].unsupported.empty()) continue;
    const auto [it, is_new] = groups.try_emplace({runs[i].ranks, runs[i].transport});
    if (is_new) it->second = {runs[i].transport, empty_job(options, runs[i].ranks), {}};
    it->second.job.cases.push_back(runs[i].item);
    it->second.runs.push_back(i);
  }
  std::vector<RunGroup> all;
  for (auto& [key, one] : groups) all.push_back(std::move(one));
  return all;
}

[[noreturn]] void refuse(const PlannedRun& run) {
  throw InputError("nothing to run: " + run.item.id + " x " + run.item.schedule + " on " + std::to_string(run.ranks) +
                   (run.ranks == 1 ? " rank: " : " ranks: ") + run.unsupported);
}

/// A file that the user named is refused when it fits no case: it may be broken, which "unsupported" would hide.
void require_a_run(const std::vector<PlannedRun>& runs, const std::string& file) {
  const PlannedRun* first = nullptr;
  for (const PlannedRun& run : runs) {
    if (run.item.schedule != file) continue;
    if (run.unsupported.empty()) return;
    if (!first) first = &run;
  }
  if (first) refuse(*first);
}

/// What is to be measured: schedules that can be had for so many ranks and 8 micro-batches.
std::vector<JobThroughput> measurements(const RunOptions& options, const std::vector<ChosenSchedule>& schedules) {
  constexpr int kMicrobatches = 8;
  const char* model = "transformer-lm";
  const int most = most_stages(models::make_model(model, reference::Dtype::F32, options.seed));
  std::vector<JobThroughput> items;
  for (const ChosenSchedule& schedule : schedules) {
    if (!schedule.csv.empty() || (!options.schedule_given &&
                                  std::ranges::find(kMeasuredSchedules, schedule.name) == std::end(kMeasuredSchedules)))
      continue;
    try {
      if (make_schedule(schedule, options.ranks, kMicrobatches).stages > most) continue;
    } catch (const InputError&) {
      continue;  // what a schedule cannot do is told with its cases
    }
    items.push_back({schedule.name, "", 5, 10, 0, kMicrobatches, 5, /*trace=*/true});
    items.push_back({schedule.name, model, 0, 0, 16, kMicrobatches, 8, /*trace=*/true});
  }
  return items;
}

}  // namespace

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
  return job;
}

std::string transport_name(TransportKind kind) {
  return kind == TransportKind::Own ? "own" : kind == TransportKind::Mpi ? "mpi" : "threads";
}

std::string why_unsupported(const reference::Case& c, const schedule::Schedule& schedule, uint64_t seed) {
  return why_unsupported(c, needs_of(c, seed), schedule, seed);
}

RunPlan make_plan(const RunOptions& options, bool one_group) {
  if (options.ranks < 1) throw InputError("--ranks: " + std::to_string(options.ranks) + " given; 1 or more are needed");
  if (options.microbatches < 0)
    throw InputError("--microbatches: " + std::to_string(options.microbatches) + " given; 1 or more are needed");
  engine::check_remat(options.remat, options.recompute != "never");
  Choices choices(options, one_group);
  if (!options.mutant.empty() && find_mutant(options.mutant).least_ranks > choices.ranks.front())
    throw InputError("--mutant: " + options.mutant + " needs " +
                     std::to_string(find_mutant(options.mutant).least_ranks) + " ranks or more");
  RunPlan plan;
  for (const Row& row : choices.pairs_only ? rows_for_pairs(choices) : every_row(choices.sizes()))
    if (!choices.whole || choices.is_meant(row)) plan.runs.push_back(choices.run(row));
  plan.groups = group(options, plan.runs);
  if (plan.groups.empty()) refuse(plan.runs.front());
  for (const ChosenSchedule& schedule : choices.schedules)
    if (!schedule.csv.empty()) require_a_run(plan.runs, schedule.name);
  if (options.throughput) {
    RunGroup last{options.transport, empty_job(options, options.ranks), {}};
    last.job.throughput = measurements(options, choices.schedules);
    if (!last.job.throughput.empty()) plan.groups.push_back(std::move(last));
  }
  return plan;
}

}  // namespace plumbline::conformance
