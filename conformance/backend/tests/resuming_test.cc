// Saved under one split, resumed under another: bit for bit the run that was never interrupted.
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/backend/engine_subject.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/rank_files.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "reference/host_results.h"
#include "reference/oracle/saved_state.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::conformance {
namespace {

using reference::ResultKind;

constexpr uint64_t kResumingSeed = 11;

/// The engine's results under `schedule` over `stages` stages, one a rank, without the numbers of steps.
TensorMap final_state(const reference::Case& c, const char* schedule, int stages) {
  const schedule::Schedule over = schedule_over_stages({schedule, ""}, stages, 0, c.microbatches);
  std::vector<RankResults> ranks(over.ranks.size());
  transport::run_thread_ranks(static_cast<int>(ranks.size()), [&](transport::Transport& transport) {
    ranks[transport.rank()] = {
        "rank " + std::to_string(transport.rank()),
        reference::to_host(run_case_on_rank(c, transport, {.schedule = over, .seed = kResumingSeed}))};
  });
  TensorMap state;
  for (const auto& [text, tensor] : merge_results(ranks)) {
    reference::ResultKey key = reference::parse_result_key(text);
    if (key.kind != ResultKind::Param && key.kind != ResultKind::Buffer && key.kind != ResultKind::OptimizerState)
      continue;
    key.step = 0;
    state.emplace(to_string(key), tensor);
  }
  return state;
}

/// The keys under which two maps differ, for messages.
std::string differing(const TensorMap& a, const TensorMap& b) {
  std::string keys;
  for (const auto& [key, tensor] : a)
    if (const auto other = b.find(key); other == b.end() || other->second != tensor) keys += " " + key;
  for (const auto& [key, tensor] : b)
    if (!a.contains(key)) keys += " " + key + " (missing)";
  return keys;
}

TensorMap as_results(const reference::SavedState& saved) {
  TensorMap state;
  const auto add = [&](ResultKind kind, const std::map<std::string, at::Tensor>& tensors) {
    for (const auto& [name, tensor] : tensors)
      state.emplace(to_string(reference::ResultKey{0, kind, -1, -1, name}), graph::to_host(tensor));
  };
  add(ResultKind::Param, saved.parameters);
  add(ResultKind::Buffer, saved.buffers);
  add(ResultKind::OptimizerState, saved.optimizer);
  return state;
}

/// Those whose numbers do not depend on the stages: real shares of a shared parameter are added by ascending stage, and
/// by micro-batch in the whole model.
std::vector<reference::Case> resumed_cases() {
  std::vector<reference::Case> found;
  for (const reference::Case& c : corpus())
    if (!c.steps_before.empty() &&
        (c.truth == reference::Truth::Exact || !case_traits(c, 3, kResumingSeed).shares_parameters))
      found.push_back(c);
  return found;
}

TEST(Resuming, SavedOnThreeStagesIsWhatTheWholeModelSaves) {
  const std::vector<reference::Case> cases = resumed_cases();
  EXPECT_GE(cases.size(), 6u);
  for (const reference::Case& c : cases) {
    reference::Case first = c;
    first.steps = c.steps_before;
    first.steps_before.clear();
    first.saves_optimizer = true;
    const TensorMap saved = final_state(first, "gpipe", 3);
    EXPECT_EQ(differing(saved, as_results(reference::saved_state(c, kResumingSeed))), "") << c.id;
    // Some state changed hands: more than the parameters.
    EXPECT_TRUE(std::ranges::any_of(saved, [](const auto& item) {
      return item.first.find("/optimizer-state/") != std::string::npos;
    })) << c.id;
  }
}

TEST(Resuming, OnFourStagesOrTwoEndsWhereTheUninterruptedRunOnThreeDoes) {
  for (const reference::Case& c : resumed_cases()) {
    reference::Case resumed = c, whole = reference::uninterrupted(c);
    resumed.saves_optimizer = whole.saves_optimizer =
        std::ranges::find(c.steps, reference::StepKind::Optimizer, &reference::Step::kind) != c.steps.end();
    const TensorMap expected = final_state(whole, "gpipe", 3);
    EXPECT_EQ(differing(final_state(resumed, "1f1b", 4), expected), "") << c.id;
    EXPECT_EQ(differing(final_state(resumed, "zb-h1", 2), expected), "") << c.id;
  }
}

}  // namespace
}  // namespace plumbline::conformance
