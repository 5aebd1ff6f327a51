// The announced traffic against the messages that a step really posts, under every kind of schedule. The oracle is a
// transport that writes down isend() and irecv().
#include "runtime/engine/plan/step_traffic.h"

#include <algorithm>

#include "runtime/engine/replicas/parameter_copies.h"
#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::testing {
namespace {

using transport::Parcel;
using transport::Traffic;

struct Announced : transport::AgreedTraffic {
  explicit Announced(Traffic traffic) : traffic(std::move(traffic)) {}
  Traffic traffic;
};

class WritesDown : public transport::ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  std::unique_ptr<transport::AgreedTraffic> agree_on_traffic(const Traffic& traffic,
                                                             const transport::Deadline&) override {
    return std::make_unique<Announced>(traffic);
  }
  void begin_traffic(transport::AgreedTraffic* traffic) override {
    if (traffic != nullptr) {
      posted = {};
      announced = static_cast<Announced*>(traffic)->traffic;
      ++steps;
    }
    inside = traffic != nullptr;
  }
  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    if (inside && is_value(tag)) posted.sends.push_back({peer, tag, bytes});
    return inner_.isend(data, bytes, peer, tag);
  }
  transport::Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    if (inside && is_value(tag)) posted.receives.push_back({peer, tag, bytes});
    return inner_.irecv(data, bytes, peer, tag);
  }

  bool is_value(int64_t tag) const { return tag >= 0 && tag < engine::CopyTags(max_tag(), stages).first(); }

  Traffic posted, announced;
  int steps = 0, stages = 0;
  bool inside = false;
};

void expect_announced(const std::string& kind, const schedule::Schedule& schedule, bool keep_strides) {
  Fleet fleet(kind, schedule);
  fleet.options.keep_strides = keep_strides;
  with_ranks(static_cast<int>(schedule.ranks.size()), [&](transport::Transport& inner) {
    at::set_num_threads(1);
    WritesDown transport(inner);
    transport.stages = schedule.stages;
    engine::Engine engine(transport, schedule, fleet.source(inner.rank()), fleet.options);
    const auto expect_same_traffic = [&](int steps) {
      EXPECT_EQ(transport.steps, steps);
      EXPECT_EQ(transport.posted.sends, transport.announced.sends) << schedule.name << ", " << kind;
      EXPECT_EQ(transport.posted.receives, transport.announced.receives) << schedule.name << ", " << kind;
    };
    const int rows = 2 * schedule.microbatches + 1;  // of two sizes
    engine.train({batch_of(kind, rows)}, target_of(kind, rows));
    expect_same_traffic(1);
    EXPECT_TRUE(schedule.ranks.size() == 1 || !transport.posted.sends.empty()) << schedule.name << ", " << kind;
    engine.evaluate({batch_of(kind, rows)}, target_of(kind, rows));
    expect_same_traffic(2);
  });
}

TEST(StepTraffic, IsWhatTheStepPosts) {
  for (const std::string& name : schedule::schedule_names()) {
    const schedule::Schedule schedule = schedule::make_schedule(name, 2, 4);
    if (!schedule::has_backward(schedule)) continue;
    for (const char* kind : {"mlp", "skip", "integers"})
      for (const bool keep_strides : {false, true}) {
        expect_announced(kind, schedule, keep_strides);
        if (HasFailure()) return;
      }
  }
}

// A group's sends may stand behind it in any order: each leaves behind its member.
TEST(StepTraffic, IsWhatTheStepPostsAfterAGroup) {
  int reordered = 0;
  for (const std::string& name : schedule::schedule_names()) {
    schedule::Schedule schedule = schedule::make_schedule(name, 2, 8);
    if (!schedule::has_backward(schedule)) continue;
    const std::vector<schedule::StageEdge> edges = schedule::chain_edges(schedule.stages);
    schedule = schedule::lower(schedule, edges);
    for (std::vector<schedule::Action>& actions : schedule.ranks)
      for (size_t i = 0; i < actions.size();) {
        const size_t end = schedule::group_end(actions, i);
        size_t sends_end = end;
        while (sends_end < actions.size() && schedule::is_send(actions[sends_end].type)) ++sends_end;
        if (end > i + 1 && sends_end > end + 1) {
          std::reverse(actions.begin() + static_cast<std::ptrdiff_t>(end),
                       actions.begin() + static_cast<std::ptrdiff_t>(sends_end));
          ++reordered;
        }
        i = end;
      }
    if (!schedule::violations(schedule, edges).empty()) continue;
    expect_announced("mlp", schedule, /*keep_strides=*/false);
    if (HasFailure()) return;
  }
  EXPECT_GT(reordered, 0);
}

}  // namespace
}  // namespace plumbline::testing
