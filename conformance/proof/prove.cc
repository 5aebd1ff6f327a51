#include "conformance/proof/prove.h"

#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <future>
#include <optional>
#include <set>

#include "conformance/backend/engine_subject.h"
#include "conformance/judge/stage_orders.h"
#include "conformance/proof/blame.h"
#include "conformance/proof/executions/detached_boundaries.h"
#include "conformance/proof/executions/unsplit_run.h"
#include "conformance/proof/executions/wire.h"
#include "conformance/proof/shapes/shape_run.h"
#include "reference/models/zoo.h"
#include "reference/named_tensors.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/text/one_line.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::proof {
namespace {

std::vector<RankTerms> run_engine(const reference::Case& c, const ProofOptions& options, Terms& terms,
                                  Occurrences& occurrences, std::atomic<int64_t>& happened) {
  const auto ranks = static_cast<int>(options.schedule.ranks.size());
  std::vector<RankTerms> out(ranks);
  Wire wire;
  transport::run_thread_ranks(ranks, [&](transport::Transport& transport) {
    at::set_num_threads(1);  // for this thread: each kernel sums in one order
    const int rank = transport.rank();
    ShapeRun shapes;
    Recorder recorder(terms, occurrences, rank, options.on_shapes ? &shapes : nullptr);
    const conformance::Fault fault =
        options.fault ? options.fault({c, options.schedule, options.seed, rank, happened}) : conformance::Fault();
    const conformance::Fault watched = observed(fault, recorder, out[rank]);
    const std::unique_ptr<transport::Transport> recording = recording_transport(transport, recorder.memory(), wire);
    const std::unique_ptr<transport::Transport> around = fault.transport ? fault.transport(*recording) : nullptr;
    conformance::EngineCaseOptions engine{options.schedule, options.seed, options.timeout};
    engine.recompute = options.recompute;
    engine.remat = options.remat;
    engine.fault = &watched;
    conformance::run_case_on_rank(c, around ? *around : *recording, engine);
  });
  return out;
}

bool is_boundary(const std::string& key) { return reference::is_boundary(reference::parse_result_key(key).kind); }

std::string result_text(const std::string& key) {
  const reference::ResultKey result = reference::parse_result_key(key);
  std::string text = std::string(reference::kind_name(result.kind)) + " " + result.name;
  if (result.stage >= 0) text += " of stage " + std::to_string(result.stage);
  if (result.stage >= 0 && result.microbatch >= 0) text += ",";
  if (result.microbatch >= 0)
    text += (result.stage >= 0 ? " micro-batch " : " of micro-batch ") + std::to_string(result.microbatch);
  return text + " of step " + std::to_string(result.step);
}

/// The expected results, in the order in which a run produces them.
std::vector<std::string> in_order(const ResultTerms& results) {
  std::vector<std::string> keys;
  for (const auto& [key, id] : results) keys.push_back(key);
  std::ranges::stable_sort(keys, [](const std::string& a, const std::string& b) {
    return reference::causal_less(reference::parse_result_key(a), reference::parse_result_key(b));
  });
  return keys;
}

std::set<std::string> names_of_parameters(const ResultTerms& results) {
  std::set<std::string> names;
  for (const auto& [text, id] : results)
    if (const reference::ResultKey key = reference::parse_result_key(text); key.kind == reference::ResultKind::Param)
      names.insert(key.name);
  return names;
}

/// The differences between the expected results and those that all ranks delivered. The first that refutes the claim
/// gives the sentence.
class Comparison {
 public:
  /// `boundaries`: the run that gives the expected terms of values between stages, beside that of the engine.
  Comparison(const ResultTerms& expected, const TwoRuns& runs, const TwoRuns& boundaries, Claim claim, Proof& proof)
      : expected_(expected), runs_(runs), boundaries_(boundaries), forms_(runs.terms), claim_(claim), proof_(proof) {}

  void compare(const std::vector<RankTerms>& ranks) {
    for (const RankTerms& rank : ranks) parameters_.push_back(names_of_parameters(rank.results));
    for (const std::string& key : in_order(expected_)) {
      bool delivered = false;
      for (const RankTerms& rank : ranks) {
        const auto found = rank.results.find(key);
        if (found == rank.results.end()) continue;
        delivered = true;
        compare(key, expected_.at(key), found->second);
      }
      if (delivered)
        require_gradients_of_copies(key, ranks);
      else
        add({key}, [] { return "no rank delivered it"; });
    }
    for (const RankTerms& rank : ranks)
      for (const auto& [key, id] : rank.results)
        if (!expected_.contains(key)) add({key}, [] { return "the unsplit run has no such result"; });
    if (!proof_.why.empty()) proof_.why += "; as sums, of the results that differ: " + sums_text(proof_.differ);
  }

 private:
  /// Every rank that has a copy of the parameter has its gradient.
  void require_gradients_of_copies(const std::string& text, const std::vector<RankTerms>& ranks) {
    const reference::ResultKey grad = reference::parse_result_key(text);
    if (grad.kind != reference::ResultKind::Grad) return;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (parameters_[rank].contains(grad.name) && !ranks[rank].results.contains(text))
        add({text}, [&] { return "rank " + std::to_string(rank) + " has a copy of the parameter without it"; });
  }

  void compare(const std::string& key, const TermId& right, const TermId& found) {
    if (found == right) return;
    add({key, relation_between(forms_, right, found), runs_.found.first(found).stage},
        [&] { return blame(is_boundary(key) ? boundaries_ : runs_, right, found); });
  }

  template <class Why>
  void add(Difference difference, const Why& why) {
    const bool as_claimed = claim_ == Claim::SameSum && difference.relation.relation == Relation::SameSum;
    if (!as_claimed && proof_.why.empty()) proof_.why = result_text(difference.key) + ": " + why();
    if (proof_.differ.empty() || proof_.differ.back().key != difference.key)
      proof_.differ.push_back(std::move(difference));
  }

  const ResultTerms& expected_;
  TwoRuns runs_, boundaries_;
  NormalForms forms_;
  Claim claim_;
  Proof& proof_;
  std::vector<std::set<std::string>> parameters_;  // by rank: the names of those that it has
};

/// An operator that the unsplit run executes n times for equal operands is executed n times in all stages together.
void count_operators(const TwoRuns& runs, Proof& proof) {
  std::optional<TermId> first;  // by identity, so that all runs of a case name the same one
  for (size_t number = 0, end = runs.terms.numbers_end(); number < end; ++number) {
    const int known = runs.expected.times(number);
    if (known == Occurrences::kMostTimes) proof.counted = false;
    if (known == 0 || runs.found.times(number) <= known) continue;
    const TermId id = runs.terms.id_of(number);
    if (!first || id < *first) first = id;
  }
  if (!first) return;
  proof.outcome = Outcome::Refuted;
  proof.why = to_string(runs.found.first(*first)) + ": " + runs.terms.at(*first).op + " is executed " +
              std::to_string(runs.found.times(*first)) + " times for the same operands, " +
              std::to_string(runs.expected.times(*first)) + " in the unsplit run";
}

/// The constants below the results: what a proof takes by content.
std::vector<std::string> constants_of(const ResultTerms& results, const Terms& terms) {
  std::vector<std::string> found;
  if (!terms.any("constant")) return found;
  std::vector<TermId> open;
  std::vector<bool> seen(terms.numbers_end());  // by number
  for (const auto& [key, id] : results) open.push_back(id);
  while (!open.empty()) {
    const TermId id = open.back();
    open.pop_back();
    const size_t number = terms.number_of(id);
    if (seen[number]) continue;
    seen[number] = true;
    const Term term = terms.at(id);
    if (term.op == "constant") found.push_back(term.attributes.substr(0, term.attributes.find(' ')));
    open.insert(open.end(), term.operands.begin(), term.operands.end());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  constexpr std::array<std::string_view, 3> kWords = {"proven", "refuted", "stopped"};
  return kWords.at(static_cast<size_t>(outcome));
}

std::string line_of(const Proof& proof, const std::string& name) {
  std::string line(outcome_name(proof.outcome));
  std::ranges::transform(line, line.begin(), [](unsigned char c) { return std::toupper(c); });
  line += " " + name + ": ";
  if (proof.outcome != Outcome::Proven) return line + proof.why;
  line += std::to_string(proof.results.size()) + " results";
  if (!proof.differ.empty())
    line += ", " + std::to_string(proof.differ.size()) + " of them in another order of the same sum";
  return line;
}

std::string why_not_provable(const reference::Case& c) {
  if (c.optimizer.clip_norm != 0.0 || c.optimizer.skip_nonfinite)
    return "the optimizer reads the norm of all gradients as a number, so that the update depends on data in a way "
           "that terms do not show";
  if (c.shards_parameters)
    return "its replicas divide the parameters among them, and parts of a tensor travel as bytes, which have no terms";
  if (c.whole_gradients) return "the gradient of a whole input is not followed to its micro-batches";
  return {};
}

Proof prove(const reference::Case& c, const ProofOptions& options) {
  if (const std::string why = why_not_provable(c); !why.empty()) throw InputError(c.id + ": " + why);
  for (const reference::Step& step : c.steps) {
    const bool runs = step == reference::StepKind::Train || step == reference::StepKind::Eval;
    const int rows = reference::rows_of(c, step);
    if (runs && rows < c.microbatches)
      throw InputError(c.id + ": " + std::to_string(rows) + " rows are fewer than " + std::to_string(c.microbatches) +
                       " micro-batches");
  }
  if (options.on_shapes) {
    const models::Model model = models::make_model(c, options.seed);
    if (model.module->named_parameters().size() != reference::first_names(model.module->named_parameters()).size())
      throw InputError(c.id + ": a parameter has several names; on shapes, copies of it cannot be compared");
  }
  Terms terms;
  Occurrences in_unsplit(terms), in_engine(terms);
  const TwoRuns runs{terms, in_unsplit, in_engine};
  ShapeRun shapes;
  Recorder recorder(terms, in_unsplit, -1, options.on_shapes ? &shapes : nullptr);
  std::atomic<int64_t> happened = 0;
  // Both runs use the process's generator of random numbers, so one follows the other. On shapes none is drawn.
  std::future<std::vector<RankTerms>> engine =
      std::async(options.on_shapes ? std::launch::async : std::launch::deferred,
                 [&] { return run_engine(c, options, terms, in_engine, happened); });
  const reference::StageOrders orders = conformance::stage_orders(options.schedule);
  Proof proof;
  proof.results = run_unsplit(c, options.seed, orders, recorder).results;
  std::vector<RankTerms> ranks;
  try {
    ranks = engine.get();
    for (const RankTerms& rank : ranks) proof.log.merge(rank.log);
    Occurrences in_detached(terms);
    if (options.boundaries && !options.on_shapes) {
      Recorder of_stages(terms, in_detached, -1);
      proof.results.merge(run_detached_boundaries(c, options.seed, orders, of_stages));
    } else {
      for (RankTerms& rank : ranks)
        std::erase_if(rank.results, [](const auto& result) { return is_boundary(result.first); });
    }
    Comparison(proof.results, runs, {terms, in_detached, in_engine}, options.claim, proof).compare(ranks);
    if (!proof.why.empty()) proof.outcome = Outcome::Refuted;
    if (proof.outcome == Outcome::Proven && !proof.log.misplaced.empty()) {
      proof.outcome = Outcome::Refuted;
      proof.why = proof.log.misplaced.front();
    }
    const bool runs_again = options.recompute.on() || options.remat.on();
    proof.counted = proof.outcome == Outcome::Proven && !runs_again;
    if (proof.counted) count_operators(runs, proof);
  } catch (const std::exception& error) {
    proof.outcome = Outcome::Stopped;
    proof.why = one_line(graph::error_text(error));
  }
  if (options.examine && proof.outcome != Outcome::Stopped) options.examine(terms, proof.results, ranks);
  proof.happened = happened;
  proof.terms = terms.size();
  proof.constants = constants_of(proof.results, terms);
  return proof;
}

}  // namespace plumbline::proof
