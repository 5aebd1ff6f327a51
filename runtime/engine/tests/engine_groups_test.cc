// Groups of a forward and a backward: the order of what the engine does in them.
#include <algorithm>

#include "runtime/engine/stage/forwarding_runner.h"
#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::testing {
namespace {

using Events = std::vector<std::string>;

/// Records when transfers begin.
class RecordedTransport : public transport::ForwardingTransport {
 public:
  RecordedTransport(transport::Transport& inner, Events& events) : ForwardingTransport(inner), events_(events) {}
  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    events_.push_back("send " + std::to_string(tag));
    return inner_.isend(data, bytes, peer, tag);
  }
  transport::Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    events_.push_back("receive " + std::to_string(tag));
    return inner_.irecv(data, bytes, peer, tag);
  }

 private:
  Events& events_;
};

/// Records when a stage computes.
class RecordedStage : public engine::ForwardingRunner {
 public:
  RecordedStage(std::unique_ptr<engine::StageRunner> inner, int stage, Events& events)
      : ForwardingRunner(std::move(inner)), stage_(stage), events_(events) {}
  void forward(int m, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    around("F", m, [&] { inner_->forward(m, inputs, outputs); });
  }
  void backward(int m, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    around("B", m, [&] { inner_->backward(m, roots, root_grads, inputs, input_grads); });
  }

 private:
  template <class Work>
  void around(const char* kind, int m, Work work) {
    const std::string action = std::to_string(stage_) + kind + std::to_string(m);
    events_.push_back(action + " begins");
    work();
    events_.push_back(action + " ends");
  }

  const int stage_;
  Events& events_;
};

/// Rank 1, in the middle, has the group (1F1;1B0): both need a message, and both make one.
TEST(EngineGroups, MessagesOfTheMembersInterleave) {
  const schedule::Schedule schedule = schedule::parse_csv(
      "0F0,0F1,0B0,0B1\n"
      "1F0,(1F1;1B0)OVERLAP_F_B,1B1\n"
      "2F0,2B0,2F1,2B1\n",
      "grouped");
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  Oracle oracle("mlp", 3, 2);
  const Told expected = oracle.train(x, target);
  Fleet fleet("mlp", schedule);
  Events events;  // of rank 1
  Told ours;
  with_ranks(3, [&](transport::Transport& transport) {
    at::set_num_threads(1);
    engine::EngineOptions options = fleet.options;
    RecordedTransport recorded(transport, events);
    const bool middle = transport.rank() == 1;
    if (middle)
      options.decorate = [&](int stage, const split::StageState&, std::unique_ptr<engine::StageRunner> inner) {
        return std::make_unique<RecordedStage>(std::move(inner), stage, events);
      };
    engine::Engine engine(middle ? recorded : transport, schedule, fleet.source(transport.rank()), options);
    engine.train({x}, target);  // with the ranks' agreement on shapes, which is no part of the step below
    engine.zero_grad();
    if (middle) events.clear();
    fleet.tell(ours, engine, engine.train({x}, target));
  });
  expect_same(ours, expected);

  const auto at = [&](const std::string& event) { return std::find(events.begin(), events.end(), event); };
  ASSERT_NE(at("1F1 begins"), events.end());
  const auto count = [](auto begin, auto end, const std::string& kind) {
    return std::count_if(begin, end, [&](const std::string& event) { return event.starts_with(kind); });
  };
  EXPECT_EQ(count(events.begin(), at("1F1 begins"), "receive"), 3) << "of 1F0, and both of the group";
  EXPECT_EQ(count(at("1F1 begins"), at("1B0 ends"), "receive"), 0);
  EXPECT_EQ(count(at("1F1 ends"), at("1B0 begins"), "send"), 1) << "1F1's value leaves before 1B0 computes";
  EXPECT_EQ(count(at("1B0 ends"), at("1B1 begins"), "send"), 1) << "1B0's gradient leaves once";
}

}  // namespace
}  // namespace plumbline::testing
