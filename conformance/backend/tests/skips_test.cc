// Skips under every schedule: a U-Net whose four skips are declared by stash and pop (reference/models/stash.cc),
// against plain autograd over the whole of it; what travels, counted in bytes, against its shapes written out by hand.
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mse_loss.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "reference/models/zoo.h"
#include "runtime/engine/engine.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/allocation_count.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::conformance {
namespace {

using Tensors = std::vector<at::Tensor>;
using NamedTensors = std::map<std::string, at::Tensor>;
using testing::with_ranks;

constexpr int kParts = 8, kMicrobatches = 16, kRows = 2;

// Floats in a row of what the parts hand on, and of what the first four stash for the last four.
constexpr int64_t kHandedOn[kParts - 1] = {4 * 8 * 8, 4 * 4 * 4, 8 * 2 * 2, 8 * 1 * 1, 8 * 2 * 2, 4 * 4 * 4, 4 * 8 * 8};
constexpr int64_t kStashed[kParts / 2] = {4 * 16 * 16, 4 * 8 * 8, 8 * 4 * 4, 8 * 2 * 2};

int stage_of_part(int part, int stages) { return part * stages / kParts; }

const std::vector<std::pair<std::string, int>> kSchedules = {// with the stages on a rank
                                                             {"gpipe", 1},
                                                             {"1f1b", 1},
                                                             {"eager-1f1b", 1},
                                                             {"zb-h1", 1},
                                                             {"zb-h2", 1},
                                                             {"zb-auto", 1},
                                                             {"chimera", 2},
                                                             {"dualpipe", 2},
                                                             {"zb-v", 2},
                                                             {"zb-v-greedy", 2},
                                                             {"looped-bfs", 2},
                                                             {"dualpipe-v", 2},
                                                             {"interleaved-1f1b", 2},
                                                             {"v-half", 2},
                                                             {"v-min", 2},
                                                             {"hanayo", 2},
                                                             {"seq1f1b", 1},
                                                             {"interleaved-zero-bubble", 2}};

/// Of a schedule by name for so many stages; on half as many ranks where each holds two.
schedule::Schedule schedule_for(const std::string& name, int stages_per_rank, int stages) {
  const bool replicas = name == "chimera" || name == "dualpipe";
  return schedule::make_schedule(
      {.name = name, .ranks = replicas ? stages : stages / stages_per_rank, .microbatches = kMicrobatches});
}

/// Bytes by (from rank, to rank).
using Traffic = std::map<std::pair<int, int>, int64_t>;

/// Adds up what is sent with tags of values; those of the gradients that copies of a stage add up lie at the top.
class Counted : public transport::ForwardingTransport {
 public:
  using transport::ForwardingTransport::ForwardingTransport;
  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    if (tag >= 0 && tag < max_tag() / 2) traffic[{rank(), peer}] += static_cast<int64_t>(bytes);
    return inner_.isend(data, bytes, peer, tag);
  }
  Traffic traffic;
};

struct Step {
  std::vector<at::Tensor> outputs = std::vector<at::Tensor>(kMicrobatches);
  NamedTensors gradients;
  Traffic traffic;
  std::map<int, int64_t> peak;  ///< by rank: most bytes of tensors at once, beyond those at the beginning
};

Step run_unet(const schedule::Schedule& schedule, split::Route route) {
  Step told;
  std::mutex mutex;
  with_ranks(static_cast<int>(schedule.ranks.size()), [&](transport::Transport& transport) {
    at::set_num_threads(1);
    const models::Model model = models::make_model("unet-stash", reference::Dtype::F32, 1);
    const models::Batch batch = models::make_batch("unet-stash", reference::Dtype::F32, kRows * kMicrobatches, 1, 0);
    const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
      return split::make_pipe({model.module.get(), model.forward, model.input_names}, inputs, training,
                              {.points = models::stage_points(model, schedule.stages), .route = route});
    };
    engine::EngineOptions options;
    options.input_names = model.input_names;
    options.input_chunks = model.input_chunks;
    options.loss = [](const Tensors& outputs, const at::Tensor& target) { return at::mse_loss(outputs[0], target); };
    options.timeout = std::chrono::seconds(60);
    Counted counted(transport);
    engine::Engine engine(counted, schedule, source, options);
    engine.train(batch.inputs, batch.targets);  // captures, and meets its peers
    engine.zero_grad();
    counted.traffic.clear();
    testing::AllocationCount allocated;
    const engine::StepResult step = engine.train(batch.inputs, batch.targets);
    const std::lock_guard<std::mutex> lock(mutex);
    told.peak[transport.rank()] = allocated.peak();
    told.traffic.merge(counted.traffic);
    for (size_t m = 0; m < step.outputs.size(); ++m)
      if (!step.outputs[m].empty()) told.outputs[m] = step.outputs[m][0];
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, tensor] : state.parameters) told.gradients[name] = tensor.grad().clone();
  });
  return told;
}

/// Plain autograd; gradients are added in the order of the schedule, replica by replica.
Step oracle(const schedule::Schedule& schedule) {
  at::set_num_threads(1);
  const models::Model model = models::make_model("unet-stash", reference::Dtype::F32, 1);
  const models::Batch batch = models::make_batch("unet-stash", reference::Dtype::F32, kRows * kMicrobatches, 1, 0);
  const auto inputs = batch.inputs[0].tensor_split(kMicrobatches),
             targets = batch.targets.one().tensor_split(kMicrobatches);
  Step told;
  std::vector<NamedTensors> grads(kMicrobatches);
  for (int m = 0; m < kMicrobatches; ++m) {
    told.outputs[m] = model.forward({inputs[m]})[0];
    at::mse_loss(told.outputs[m], targets[m]).backward();
    for (const auto& item : model.module->named_parameters()) {
      grads[m][item.key()] = item.value().grad();
      item.value().mutable_grad() = at::Tensor();
    }
  }
  for (const auto& item : model.module->named_parameters()) {
    const int stage = stage_of_part(std::stoi(item.key().substr(std::string("parts.").size())), schedule.stages);
    at::Tensor total;
    for (int replica = 0; replica < schedule.replicas(); ++replica) {
      at::Tensor sum;
      for (const schedule::Action& action : schedule.ranks[schedule.rank_of_stage[replica * schedule.stages + stage]]) {
        if (action.stage != stage || (action.type != schedule::ActionType::B && action.type != schedule::ActionType::W))
          continue;
        if (schedule.replicas() > 1 && schedule.replica_of_microbatch[action.microbatch] != replica) continue;
        const at::Tensor& grad = grads[action.microbatch].at(item.key());
        sum = sum.defined() ? sum + grad : grad;
      }
      if (sum.defined()) total = total.defined() ? total + sum : sum;
    }
    told.gradients[item.key()] = total / kMicrobatches;
  }
  return told;
}

/// Every value once straight from the stage that made it to the one that takes it, and its gradient once back; or both
/// by all stages between.
Traffic traffic_of(const schedule::Schedule& schedule, split::Route route) {
  Traffic traffic;
  const auto edge = [&](int from_part, int to_part, int64_t floats) {
    const int first = stage_of_part(from_part, schedule.stages), last = stage_of_part(to_part, schedule.stages);
    const int step = route == split::Route::Direct ? std::max(last - first, 1) : 1;
    for (int from = first; from < last; from += step)
      for (int m = 0; m < kMicrobatches; ++m) {
        const int from_rank = schedule.rank_of(from, m), to_rank = schedule.rank_of(from + step, m);
        if (from_rank == to_rank) continue;
        traffic[{from_rank, to_rank}] += floats * kRows * 4;
        traffic[{to_rank, from_rank}] += floats * kRows * 4;
      }
  };
  for (int part = 0; part + 1 < kParts; ++part) edge(part, part + 1, kHandedOn[part]);
  for (int part = 0; part < kParts / 2; ++part) edge(part, kParts - 1 - part, kStashed[part]);
  return traffic;
}

void expect_same(const NamedTensors& ours, const NamedTensors& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (const auto& [name, tensor] : theirs) EXPECT_TRUE(at::equal(ours.at(name), tensor)) << "gradient of " << name;
}

TEST(SkipsInPipelines, BitsOfPlainAutogradAndBytesOfTheDirectEdgesUnderEverySchedule) {
  for (const int stages : {4, 8})
    for (size_t i = 0; i < kSchedules.size(); ++i) {
      if (stages == 8 && !testing::in_full()) continue;  // the next test runs eight stages, without the oracle
      if (!testing::in_sample(i, 2)) continue;
      const auto& [name, stages_per_rank] = kSchedules[i];
      SCOPED_TRACE(name + ", " + std::to_string(stages) + " stages");
      const schedule::Schedule schedule = schedule_for(name, stages_per_rank, stages);
      ASSERT_EQ(schedule.stages, stages);
      const Step ours = run_unet(schedule, split::Route::Direct), theirs = oracle(schedule);
      for (int m = 0; m < kMicrobatches; ++m)
        EXPECT_TRUE(at::equal(ours.outputs[m], theirs.outputs[m])) << "output of micro-batch " << m;
      expect_same(ours.gradients, theirs.gradients);
      EXPECT_EQ(ours.traffic, traffic_of(schedule, split::Route::Direct));
      if (HasFailure()) return;
    }
}

// The same bits where the skips go from stage to stage; what that costs in bytes, and in memory on the ranks between.
TEST(SkipsInPipelines, HopByHopMovesAndHoldsMore) {
  for (size_t i = 0; i < kSchedules.size(); ++i) {
    if (!testing::in_sample(i, 4)) continue;
    const auto& [name, stages_per_rank] = kSchedules[i];
    SCOPED_TRACE(name);
    const schedule::Schedule schedule = schedule_for(name, stages_per_rank, kParts);
    const Step direct = run_unet(schedule, split::Route::Direct), hops = run_unet(schedule, split::Route::Neighbours);
    expect_same(hops.gradients, direct.gradients);
    EXPECT_EQ(hops.traffic, traffic_of(schedule, split::Route::Neighbours));
    int64_t all_direct = 0, all_hops = 0;
    for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
      all_direct += direct.peak.at(rank);
      all_hops += hops.peak.at(rank);
      // Where the first skip begins or ends, both hold the same.
      const bool holds_an_end = std::ranges::any_of(schedule.ranks[rank], [](const schedule::Action& action) {
        return action.stage == 0 || action.stage == kParts - 1;
      });
      if (!holds_an_end) {
        EXPECT_LT(direct.peak.at(rank), hops.peak.at(rank)) << "peak memory of rank " << rank;
      }
    }
    EXPECT_LT(all_direct, all_hops) << "sum of the ranks' peaks";
    if (HasFailure()) return;
  }
}

/// Each boundary: its name, the stage that makes it, and those that take it.
std::vector<std::string> boundaries(const std::string& name, int stages) {
  const models::Model model = models::make_model(name, reference::Dtype::F32, 1);
  const split::Pipe pipe = split::make_pipe({model.module.get(), model.forward, model.input_names},
                                            models::make_batch(name, reference::Dtype::F32, 2, 1, 0).inputs, true,
                                            {.points = models::stage_points(model, stages)});
  std::vector<std::string> texts;
  for (const split::Boundary& boundary : pipe.boundaries) {
    texts.push_back(boundary.name + " " + std::to_string(boundary.producer));
    for (const split::Boundary::Consumer& consumer : boundary.consumers)
      texts.back() += "-" + std::to_string(consumer.stage);
  }
  return texts;
}

TEST(SkipsInPipelines, DeclaredAndFoundTheyAreTheSameBoundaries) {
  EXPECT_EQ(boundaries("exact-stash", 4),
            (std::vector<std::string>{"parts.0 0-2", "parts.1 0-1-3", "parts.3 1-2", "parts.5 2-3"}));
  // In more stages exact-skip adds before its part begins, so in the stage before.
  for (const int stages : {2, 4})
    EXPECT_EQ(boundaries("exact-stash", stages), boundaries("exact-skip", stages)) << stages << " stages";
}

}  // namespace
}  // namespace plumbline::conformance
