#include "runtime/engine/plan/step_traffic.h"

#include <c10/util/accumulate.h>

#include <tuple>
#include <utility>
#include <vector>

#include "runtime/engine/step/group_order.h"

namespace plumbline::engine {
namespace {

using enum schedule::ActionType;

class TrafficOfRank {
 public:
  TrafficOfRank(const EngineContext& context, const Plan& plan) : context_(context), plan_(plan) {}

  void add(const schedule::Action& action) {
    const auto [type, stage, microbatch] = std::tuple(action.type, action.stage, action.microbatch);
    const bool forward = type == SEND_F || type == RECV_F;
    if (!forward && type != SEND_B && type != RECV_B) return;
    const bool to_consumers = type == SEND_F || type == RECV_B;
    for (const int c : to_consumers ? plan_.outgoing[stage] : plan_.incoming[stage]) {
      if (!plan_.carries(c, microbatch)) continue;
      const split::Boundary& boundary = plan_.boundary(c, microbatch);
      const int other = to_consumers ? plan_.channels[c].consumer_stage : boundary.producer;
      if (context_.is_local(other, microbatch) || (!forward && !boundary.has_gradient)) continue;
      add(type == SEND_F || type == SEND_B ? traffic_.sends : traffic_.receives, context_.rank_of(other, microbatch),
          forward ? plan_.forward_tag(c, microbatch) : plan_.backward_tag(c, microbatch), boundary.value);
    }
  }

  transport::Traffic take() { return std::move(traffic_); }

 private:
  /// As make_outgoing() and post_receive() of step/tensor_transfer.h divide a tensor.
  void add(std::vector<transport::Parcel>& to, int peer, int64_t tag, const graph::Value& value) const {
    const auto elements = static_cast<size_t>(c10::multiply_integers(value.sizes));
    to.push_back({peer, tag, elements * c10::elementSize(value.dtype)});
    if (context_.options.keep_strides && !value.sizes.empty())
      to.push_back({peer, tag + plan_.tag_count(), value.sizes.size() * sizeof(int64_t)});
  }

  const EngineContext& context_;
  const Plan& plan_;
  transport::Traffic traffic_;
};

}  // namespace

transport::Traffic step_traffic(const EngineContext& context, const Plan& plan,
                                std::span<const schedule::Action> actions) {
  TrafficOfRank traffic(context, plan);
  std::vector<char> executed;
  for (size_t i = 0; i < actions.size();)
    i = for_each_of_group(actions, i, schedule::group_end(actions, i), executed,
                          [&](size_t position) { traffic.add(actions[position]); });
  return traffic.take();
}

}  // namespace plumbline::engine
