// Every mutant must be caught, and named by the place where it sits; without a mutant everything must pass.
#include "conformance/mutants.h"

#include <gtest/gtest.h>

#include <mutex>

#include "conformance/backend/engine_subject.h"
#include "conformance/backend/host_tensors.h"
#include "conformance/chosen_schedule.h"
#include "conformance/corpus.h"
#include "conformance/judge.h"
#include "runtime/error.h"
#include "runtime/transport/threads.h"

namespace plumbline {
namespace {

constexpr uint64_t kSeed = 5;
/// One of each kind; `plumbline run` goes through all of them.
constexpr const char* kSchedules[] = {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zb-v"};

/// Over four stages, on as many ranks as the schedule takes for them.
CaseVerdict run_and_judge(const std::string& id, const std::string& name, const Mutant* mutant) {
  const Case& c = find_case(id);
  const Schedule schedule = schedule_over_stages({name, ""}, 4, 0, c.microbatches);
  TensorMap merged;
  std::mutex mutex;
  run_thread_ranks(static_cast<int>(schedule.ranks.size()), [&](Transport& transport) {
    EngineCaseOptions options{schedule, kSeed};
    options.mutant = mutant;
    std::unique_ptr<Transport> mutated;
    if (mutant && mutant->transport) mutated = mutant->transport(transport, c.microbatches);
    const TensorMap mine = to_host(run_case_on_rank(c, mutated ? *mutated : transport, options));
    const std::lock_guard<std::mutex> lock(mutex);
    merged.insert(mine.begin(), mine.end());
  });
  Judge judge(kSeed);
  return judge.judge(c, schedule, merged);
}

TEST(Mutants, WithoutOneEverythingPasses) {
  for (const char* id : {"exact-mlp-mean", "exact-skip", "mlp"})
    for (const char* schedule : kSchedules) {
      const CaseVerdict verdict = run_and_judge(id, schedule, nullptr);
      EXPECT_EQ(verdict.status, Status::Pass) << sentence(verdict);
    }
}

TEST(Mutants, DroppedLastGradientIsNamed) {
  for (const char* id : {"exact-mlp-mean", "mlp"})
    for (const char* schedule : kSchedules) {
      SCOPED_TRACE(schedule);
      const CaseVerdict verdict = run_and_judge(id, schedule, &find_mutant("drop-last-microbatch"));
      ASSERT_EQ(verdict.status, Status::Fail);
      EXPECT_EQ(verdict.first->key.kind, ResultKind::Partial) << sentence(verdict);
      EXPECT_EQ(verdict.first->key.microbatch, find_case(id).microbatches - 1);
      EXPECT_EQ(verdict.first->key.stage, 3);
      EXPECT_NE(verdict.first->key.name, "");
    }
}

TEST(Mutants, SwappedOutputsAreNamedWhereTheyWereFirstUsed) {
  for (const char* id : {"exact-mlp-mean", "mlp"}) {
    const CaseVerdict verdict = run_and_judge(id, "gpipe", &find_mutant("swap-microbatches"));
    ASSERT_EQ(verdict.status, Status::Fail);
    EXPECT_EQ(verdict.first->key.kind, ResultKind::Forward) << sentence(verdict);
    EXPECT_EQ(verdict.first->key.microbatch, 0);
    EXPECT_EQ(verdict.first->key.stage, 1);
  }
}

TEST(Mutants, ScaledGradientIsNamedWhereItBegins) {
  for (const char* id : {"exact-mlp-mean", "mlp"})
    for (const char* schedule : kSchedules) {
      SCOPED_TRACE(schedule);
      const CaseVerdict verdict = run_and_judge(id, schedule, &find_mutant("scale-stage-gradient"));
      ASSERT_EQ(verdict.status, Status::Fail);
      EXPECT_EQ(verdict.first->key.kind, ResultKind::Partial) << sentence(verdict);
      EXPECT_EQ(verdict.first->key.microbatch, 0);
      EXPECT_EQ(verdict.first->key.stage, 0);
    }
}

TEST(Mutants, AnUnknownOneIsRefusedWithThoseThereAre) {
  try {
    find_mutant("nonesuch");
    FAIL();
  } catch (const InputError& error) {
    for (const Mutant& mutant : mutants()) EXPECT_NE(std::string(error.what()).find(mutant.name), std::string::npos);
  }
}

}  // namespace
}  // namespace plumbline
