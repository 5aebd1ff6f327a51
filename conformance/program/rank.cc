#include "conformance/program/rank.h"

#include <nlohmann/json.hpp>
#include <random>

#include "conformance/backend/flight/rank_flight.h"
#include "conformance/judge/rank_files.h"
#include "runtime/engine/engine.h"
#include "runtime/error.h"
#include "runtime/graph/host_tensors.h"
#include "runtime/split/io/transmit.h"
#include "runtime/transport/collectives.h"

namespace plumbline::program {
namespace {

std::string new_run_id() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", device(), device());
  return text;
}

HostTensor result(const at::Tensor& tensor) { return graph::to_host(graph::in_pairs(tensor.detach())); }

/// For the begin and the end of a run. The engine bounds the waits in between.
transport::Deadline patient(double timeout_seconds) {
  return transport::Deadline::patient(transport::from_seconds(timeout_seconds));
}

/// The part of the step that every rank needs, besides stages and batch.
nlohmann::json describe_step(const ProgramStep& step) {
  nlohmann::json names = nlohmann::json::array(), replicated = nlohmann::json::array();
  for (const graph::GraphInput& input : step.prepared.program.graph.inputs) names.push_back(input.name);
  for (const microbatch::ChunkSpec& chunk : step.batch.chunks) replicated.push_back(chunk.replicate);
  const ProgramLoss& loss = step.prepared.loss;
  return {{"run", new_run_id()},
          {"schedule", step.schedule.name},
          {"csv", step.schedule.csv},
          {"microbatches", step.batch.microbatches},
          {"inputs", names},
          {"replicated", replicated},
          {"loss_kind", static_cast<int>(loss.spec.kind)},
          {"loss_reduction", static_cast<int>(loss.spec.reduction)},
          {"loss_output", loss.output},
          {"target", loss.target},
          {"backward", step.prepared.has_backward},
          {"recompute", static_cast<int>(step.recompute.policy)},
          {"recompute_blocks_in", step.recompute.blocks_in},
          {"remat", step.remat.mode},
          {"remat_policy", step.remat.policy},
          {"seed", step.seed},
          {"timeout", step.timeout_seconds}};
}

TensorMap batch_tensors(const ProgramStep& step) {
  TensorMap tensors;
  for (size_t i = 0; i < step.batch.inputs.size(); ++i)
    tensors.emplace("input." + std::to_string(i), graph::to_host(step.batch.inputs[i]));
  if (step.batch.target.defined()) tensors.emplace("target", graph::to_host(step.batch.target));
  return tensors;
}

/// Rank 0 sends each rank the stages that the schedule assigns to it, and no others.
split::Pipe distribute(transport::Transport& transport, const split::Pipe* pipe, const schedule::Schedule& schedule,
                       const std::string& run, const transport::Deadline& deadline) {
  constexpr int64_t kSizeTag = 0, kBodyTag = 1;
  const auto what = [] { return std::string("the stages that rank 0 sends"); };
  if (transport.rank() != 0) {
    uint64_t size = 0;
    transport::Request header = transport.irecv(&size, sizeof size, 0, kSizeTag);
    transport.wait(header, deadline, what);
    std::string bytes(size, '\0');
    transport::Request body = transport.irecv(bytes.data(), bytes.size(), 0, kBodyTag);
    transport.wait(body, deadline, what);
    return split::unpack_stages(bytes, run);
  }
  for (int rank = 1; rank < transport.size(); ++rank) {
    const std::string bytes = split::pack_stages(*pipe, schedule::stages_of_rank(schedule, rank), run);
    const uint64_t size = bytes.size();
    transport::Request header = transport.isend(&size, sizeof size, rank, kSizeTag);
    transport::Request body = transport.isend(bytes.data(), bytes.size(), rank, kBodyTag);
    transport.wait(header, deadline, what);
    transport.wait(body, deadline, what);
  }
  return split::unpack_stages(split::pack_stages(*pipe, schedule::stages_of_rank(schedule, 0), run), run);
}

engine::EngineOptions engine_options(const nlohmann::json& step) {
  engine::EngineOptions options;
  options.input_names = step["inputs"].get<std::vector<std::string>>();
  for (const bool replicated : step["replicated"]) {
    microbatch::ChunkSpec chunk;
    chunk.replicate = replicated;
    options.input_chunks.push_back(chunk);
  }
  ProgramLoss loss;
  loss.spec = {static_cast<reference::LossKind>(step["loss_kind"].get<int>()),
               static_cast<reference::Reduction>(step["loss_reduction"].get<int>())};
  loss.output = step["loss_output"];
  options.loss = loss_function(loss);
  options.recompute.policy = static_cast<engine::Recompute>(step["recompute"].get<int>());
  options.recompute.blocks_in = step["recompute_blocks_in"];
  options.remat = {step["remat"], step["remat_policy"]};
  options.seed = step["seed"];
  options.seed_by_microbatch = true;
  options.keep_strides = true;
  options.timeout = transport::from_seconds(step["timeout"]);
  return options;
}

/// Stands for a gradient that is not defined, so that a copy that lacks one differs from a copy that has one.
const HostTensor& no_gradient() {
  static const HostTensor none{"BOOL", {0}, {}};
  return none;
}

/// Throws Error if copies in two stages of this rank differ.
TensorMap results_of(const engine::Engine& engine, const engine::StepResult& step) {
  TensorMap results;
  for (size_t m = 0; m < step.outputs.size(); ++m)
    for (size_t i = 0; i < step.outputs[m].size(); ++i)
      if (step.outputs[m][i].defined())
        results.emplace("output." + std::to_string(m) + "." + std::to_string(i), result(step.outputs[m][i]));
  for (size_t m = 0; m < step.losses.size(); ++m)
    if (step.losses[m].defined()) results.emplace("loss." + std::to_string(m), result(step.losses[m]));
  std::vector<conformance::RankResults> stages;
  for (const auto& [stage, state] : engine.states()) {
    TensorMap of_stage;
    for (const auto& [name, tensor] : state.parameters)
      of_stage.emplace("grad." + name, tensor.grad().defined() ? result(tensor.grad()) : no_gradient());
    for (const auto& [name, tensor] : state.buffers) of_stage.emplace("buffer." + name, result(tensor));
    stages.push_back({"stage " + std::to_string(stage), std::move(of_stage)});
  }
  results.merge(conformance::uncontested(conformance::merge_named(stages)));
  return results;
}

/// Throws Error if copies on two ranks differ. `gathered`: encoded results_of() by rank.
TensorMap merged_results(const std::vector<std::vector<std::byte>>& gathered) {
  std::vector<conformance::RankResults> ranks;
  for (const std::vector<std::byte>& bytes : gathered)
    ranks.push_back({"rank " + std::to_string(ranks.size()),
                     decode_tensors({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "a rank's results")});
  TensorMap results = conformance::uncontested(conformance::merge_named(ranks));
  std::erase_if(results,
                [](const auto& entry) { return entry.first.starts_with("grad.") && entry.second == no_gradient(); });
  return results;
}

TensorMap run_step(transport::Transport& transport, const ProgramStep* step, c10::Device device) {
  const std::string text = transport::broadcast_text(transport, step ? describe_step(*step).dump() : "", patient(0));
  const nlohmann::json description = nlohmann::json::parse(text);
  const double timeout = description["timeout"];
  const TensorMap batch = decode_tensors(
      transport::broadcast_text(transport, step ? encode_tensors(batch_tensors(*step)) : "", patient(timeout)),
      "the batch from rank 0");
  const schedule::Schedule schedule =
      conformance::make_schedule(conformance::ChosenSchedule{description["schedule"], description["csv"]},
                                 transport.size(), description["microbatches"].get<int>());
  const split::Pipe pipe =
      distribute(transport, step ? &step->prepared.pipe : nullptr, schedule, description["run"], patient(timeout));

  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < description["inputs"].size(); ++i)
    inputs.push_back(graph::from_host(batch.at("input." + std::to_string(i))).to(device));
  const at::Tensor target = batch.contains("target") ? graph::from_host(batch.at("target")).to(device) : at::Tensor();
  engine::EngineOptions options = engine_options(description);
  options.device = device;
  engine::Engine engine(
      transport, schedule, [&](bool, const std::vector<at::Tensor>&) { return pipe; }, std::move(options));
  const bool backward = description["backward"];
  const engine::StepResult result = backward ? engine.train(inputs, target) : engine.evaluate(inputs, target);
  const std::string mine = encode_tensors(results_of(engine, result));
  return merged_results(transport::gather_bytes(transport, 0, std::as_bytes(std::span(mine)), patient(timeout)));
}

}  // namespace

TensorMap run_step_on_rank(transport::Transport& transport, const ProgramStep* step, c10::Device device) {
  TensorMap results;
  conformance::with_flight_log(transport, transport::from_seconds(0),
                               [&](transport::Transport& logged) { results = run_step(logged, step, device); });
  return results;
}

}  // namespace plumbline::program
