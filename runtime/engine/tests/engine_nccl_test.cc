// Every kind of schedule over NCCL's transport and its stub, in every mode of the stub: bitwise like plain autograd of
// the whole model, which knows of no transport.
#include <chrono>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/testing/in_full.h"
#include "runtime/transport/nccl/nccl_transport.h"

namespace plumbline::testing {
namespace {

/// While it exists, with_ranks() gives its bodies NCCL's transport over that of the ranks.
class OverNccl {
 public:
  explicit OverNccl(const std::string& choice) : former_(set_rank_launcher({})) {
    set_rank_launcher({former_.available, [former = former_, choice](int ranks, const RankBody& body) {
                         former.run(ranks, [&](transport::Transport& control) {
                           const auto over = transport::nccl::make_nccl_transport(
                               transport::nccl::load_library(transport::nccl::parse_library_choice(choice)), control,
                               {.timeout = std::chrono::seconds(30)});
                           body(*over);
                         });
                       }});
  }
  ~OverNccl() { set_rank_launcher(former_); }
  OverNccl(const OverNccl&) = delete;
  OverNccl& operator=(const OverNccl&) = delete;

 private:
  RankLauncher former_;
};

struct Mode {
  const char* choice;
  std::vector<int> ranks;
  size_t first = 0;  ///< the schedule with which a sample of every third begins
};

void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.choice; }

class EngineOverNccl : public ::testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineOverNccl,
                         ::testing::Values(Mode{"stub:rendezvous", {2, 4}, 0}, Mode{"stub:eager", {2, 4}, 1},
                                           Mode{"stub:late", {2, 4}, 2}, Mode{"stub:poison", {2, 4}, 0},
                                           Mode{"stub:shuffle", {2, 4}, 1}, Mode{"stub:apart", {2}},
                                           Mode{"stub:late,poison,shuffle,headers", {2, 4, 8}, 2}));

TEST_P(EngineOverNccl, EverySchedule) {
  const OverNccl over(GetParam().choice);
  size_t number = 0;
  for (const std::string& name : schedule::schedule_names()) {
    if (!in_sample(number++, 3, GetParam().first)) continue;
    for (const int ranks : GetParam().ranks) {
      if (ranks != 4 && GetParam().ranks.size() > 1 && !in_full()) continue;
      const schedule::Schedule schedule = schedule::make_schedule(name, ranks, 2 * ranks);
      if (!schedule::has_backward(schedule)) continue;
      // A skip over stages makes receives that are posted in another order than the sends.
      expect_like_oracle(ranks == 4 ? "skip" : "mlp", schedule, 2 * schedule.microbatches + 1, /*steps=*/2);
      if (HasFailure()) return;
    }
  }
}

TEST_P(EngineOverNccl, OtherModels) {
  const OverNccl over(GetParam().choice);
  for (const char* kind : {"tied", "two outputs", "integers", "frozen early"})
    for (const char* name : {"interleaved-1f1b", "zb-v", "dualpipe"}) {
      const schedule::Schedule schedule = schedule::make_schedule(name, 2, 4);
      expect_like_oracle(kind, schedule, 9);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace plumbline::testing
