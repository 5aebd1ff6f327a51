// Every recorded mutant (conformance/mutants/killers.json) is refuted without numbers, or the table says why not.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/mutants/kill_matrix.h"
#include "conformance/mutants/killers_path.h"
#include "conformance/mutants/mutants.h"
#include "conformance/proof/prove.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "runtime/testing/in_full.h"

namespace plumbline::proof {
namespace {

constexpr const char* kTheNorm = "it acts on the norm of all gradients, a number; no proof takes such a case";

constexpr const char* kShards = "it acts on parts of parameters, bytes without a term; no proof takes such a case";

/// Their cases are taken by proofs, but not their messages.
constexpr const char* kStreams =
    "its messages travel past the recorded ones, over a library that carries bytes, not terms";

/// Their cases are taken by proofs, but not what users' hooks see.
constexpr const char* kHooks = "it changes when hooks after accumulations run, which no term tells";

constexpr const char* kWhole = "it acts on gradients of whole inputs; no proof takes such a case";

/// The mutants that a proof cannot refute, and why. docs/proof.md lists the reasons.
const std::map<std::string, const char*> kBeyondTerms = {
    {"after-hook-at-the-end", kHooks},
    {"after-hook-early", kHooks},
    {"after-hook-lost", kHooks},
    {"after-hook-of-part", kHooks},
    {"after-hook-twice", kHooks},
    {"clipped-on-first-rank-only", kTheNorm},
    {"event-wait-left-out", kStreams},
    {"whole-gradient-divided", kWhole},
    {"whole-gradient-lost", kWhole},
    {"whole-gradient-of-last-rows", kWhole},
    {"whole-gradient-rows-rolled", kWhole},
    {"every-step-skipped", kTheNorm},
    {"local-loss-not-scaled", kTheNorm},
    {"norm-counts-copies", kTheNorm},
    {"norm-counts-replicas", kTheNorm},
    {"norm-in-bf16", kTheNorm},
    {"norm-of-microbatch-means", kTheNorm},
    {"norm-of-other-kind", kTheNorm},
    {"norm-of-own-rank", kTheNorm},
    {"norm-of-scaled-gradients", kTheNorm},
    {"norm-squared", kTheNorm},
    {"one-stream-for-both-directions", kStreams},
    {"overflow-ignored", kTheNorm},
    {"receive-smaller-than-send", kStreams},
    {"send-freed-at-its-post", kStreams},
    {"sends-in-another-order", kStreams},
    {"parameters-divided-after-evaluation", kShards},
    {"shard-empty", kShards},
    {"shard-of-earlier-gather", kShards},
    {"shard-reversed", kShards},
    {"step-skipped-on-own-rank", kTheNorm},
    {"used-ungathered", kShards},
};

TEST(ProofOfMutants, EachIsRefutedOrTheTableSaysWhyNot) {
  int refuted = 0, stopped = 0, read = 0;
  for (const auto& [name, killers] : conformance::read_killers(PLUMBLINE_KILLERS)) {
    if (!testing::in_sample(read++, 8)) continue;
    SCOPED_TRACE(name);
    if (const auto beyond = kBeyondTerms.find(name);
        beyond != kBeyondTerms.end() && (beyond->second == kStreams || beyond->second == kHooks))
      continue;
    const auto taken = std::ranges::find_if(killers, [](const conformance::Killer& each) {
      return why_not_provable(conformance::find_case(each.run.case_id)).empty();
    });
    EXPECT_EQ(taken == killers.end(), kBeyondTerms.contains(name)) << "the table is out of date";
    if (taken == killers.end()) continue;
    const conformance::Killer& killer = *taken;
    const reference::Case& c = conformance::find_case(killer.run.case_id);
    // The engine waits for a message that never comes: there are no results to compare.
    if (killer.by == conformance::Kill::Timeout) {
      ++stopped;
      continue;
    }
    ProofOptions options;
    options.schedule = conformance::case_schedule(c, {killer.run.schedule, c.schedule_csv}, killer.run.ranks);
    options.recompute.policy = engine::parse_recompute(c.recompute);
    options.fault = conformance::find_mutant(name).make;
    const Proof proof = prove(c, options);
    EXPECT_NE(proof.outcome, Outcome::Proven) << to_string(killer.run);
    EXPECT_NE(proof.why, "");
    // An engine that stops by itself was not refuted by a proof.
    if (killer.by == conformance::Kill::Fail) {
      EXPECT_EQ(proof.outcome, Outcome::Refuted) << proof.why;
    }
    ++(proof.outcome == Outcome::Stopped ? stopped : refuted);
  }
  EXPECT_GE(refuted, testing::in_full_or_sample(150, 18));
  EXPECT_LE(stopped, 25);
}

}  // namespace
}  // namespace plumbline::proof
