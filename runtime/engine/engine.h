// Engine: one rank carrying out its actions of a schedule, over a transport.
//
// A step divides the batch into micro-batches, carries out the rank's ordered action list, and finishes the gradients.
// Whatever the schedule, a step means the same thing:
//   - gradients of this step are summed over micro-batches in the order of the stage's B and W actions, copies of a
//     parameter are summed in ascending order of (stage, replica), the sum is divided by the number of micro-batches
//     once (or not, as asked), and only then added to what earlier steps left in .grad. So steps accumulate, and an
//     evaluation between them changes nothing;
//   - a mean loss over uneven micro-batches is weighted, so that the result is the mean over the batch.
//
// A schedule of computations alone is lowered for the model's own edges. One that is lowered already, such as a CSV of
// PyTorch's compute_comms form, is checked against them and carried out to the letter: WAIT_SEND waits for just that
// send, a send without one is finished at the end of the step. Nothing is divided over a data-parallel group here, so
// UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD do nothing unless a custom function does it (custom_function.h);
// gradients are not scaled before the end of the step. An evaluation carries out the F, SEND_F, RECV_F, WAIT_SEND_F,
// UNSHARD and RESHARD of the list, in its order. The members of a group run one after another in the order of the list.
//
// With several replicas (Schedule::replica_of_microbatch) a rank has one copy of each stage that it holds, and takes
// the micro-batches that the schedule gives it there. Outputs and losses come about on the ranks of the last stage. A
// model whose forward writes buffers is refused: no replica would see all micro-batches.
//
// A value crosses from stage to stage as a contiguous tensor, and so does its gradient, also between stages of one
// rank: the order in which a kernel adds up depends on strides, and bits must not depend on which rank holds which
// stage. With `keep_strides` both cross in the layout that they have, so that bits are those of the uncut model.
//
// A backward comes whole (B) or in halves (I, later W; split_backward.h), also mixed in one schedule. As in the seed,
// the I of a stage whose inputs want no gradient, such as the first, does nothing, and its W is the full backward.
//
// Receives are posted where the lowered schedule says so, sends never block; a rank that waits sleeps. After an
// exception the step is gone and gradients are as before it (buffers that a forward wrote are not); whoever owns the
// transport then aborts the other ranks. The text of what fails in an action begins with its place in the rank's
// lowered list: "rank 1, position 4 (1B0): ...".
//
// Ranks compare the shapes of all boundary values when a list of micro-batch shapes is new to them. That every rank
// gets the same batch in each later step is the caller's business: another size of a message is refused, another shape
// of the same size is not seen.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/arrival.h"
#include "runtime/engine/custom_function.h"
#include "runtime/engine/gradients.h"
#include "runtime/engine/graph_stage.h"
#include "runtime/engine/partitioned_stage.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/stage_runner.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/microbatch/chunk_spec.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/trace.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// A scalar loss from the model's outputs and the target of one micro-batch; in an evaluation it may be undefined.
using LossFunction = std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const at::Tensor& target)>;

/// What a user's modules have left to do for the gradients of a stage's parameters; empty where that is nothing.
using WeightWork = std::function<void()>;

/// Sees values as they come about; tensors are detached and may be kept. Called on the engine's thread.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  /// A boundary value as `stage` takes it, before it runs; a leaf of this micro-batch alone that requires a gradient
  /// where one is wanted, so that hooks put on it here are gone after the step.
  virtual void on_taken(int stage, int microbatch, const std::string& name, const at::Tensor& value) {
    static_cast<void>(stage), static_cast<void>(microbatch), static_cast<void>(name), static_cast<void>(value);
  }
  /// A boundary value that `stage` made.
  virtual void on_forward(int stage, int microbatch, const std::string& name, const at::Tensor& value) = 0;
  /// The gradient that `stage` hands back for one of its inputs.
  virtual void on_backward(int stage, int microbatch, const std::string& name, const at::Tensor& grad) = 0;
  /// After the B or W of `microbatch`: what parameter `name` of `stage` has accumulated in this step, not divided.
  virtual void on_partial(int stage, int microbatch, const std::string& name, const at::Tensor& grad) = 0;
  /// The gradient of input `input` of the model, where one that requires a gradient got one; not divided.
  virtual void on_input_gradient(int microbatch, int input, const at::Tensor& grad) {
    static_cast<void>(microbatch), static_cast<void>(input), static_cast<void>(grad);
  }
};

struct EngineOptions {
  std::vector<std::string> input_names;
  std::vector<microbatch::ChunkSpec> input_chunks;
  microbatch::ChunkSpec target_chunk;
  /// How outputs are joined by merged_outputs(); what is not listed is joined along dimension 0.
  std::vector<microbatch::ChunkSpec> output_chunks;
  /// Without a loss a step ends with the outputs: there is no backward.
  LossFunction loss;
  /// The loss is a mean over the rows of its micro-batch.
  bool mean_loss = false;
  /// Of how many things a mean loss is the mean, given a micro-batch's target: where targets count for nothing
  /// (padding), each micro-batch weighs by those that do. Without it, by its rows.
  std::function<int64_t(const at::Tensor& target)> mean_count;
  bool divide_by_microbatches = true;
  uint64_t seed = 0;
  /// Seed the generator with seed + micro-batch wherever a stage begins to draw, instead of differently for each step,
  /// stage and micro-batch: with the random state carried along (SplitOptions) each micro-batch then draws what the
  /// uncut model would after torch::manual_seed(seed + micro-batch).
  bool seed_by_microbatch = false;
  bool keep_strides = false;
  RecomputeOptions recompute;
  /// Not together with `recompute`. Bits stay as they are.
  RematOptions remat;
  /// Every single wait ends after this long, at the latest.
  transport::Clock::duration timeout = std::chrono::seconds(60);
  /// For modules that make the gradients of their parameters themselves, apart from autograd (PyTorch's dw_builder):
  /// asked once for each stage and micro-batch, right after autograd's backward. A B does the work at once; an I is the
  /// full backward on every stage and keeps the work for the W, which then does nothing else. Not asked where the loss
  /// does not depend on the stage. The work adds to .grad; no gradients are recorded meanwhile. Outputs keep their
  /// memory until the backward, since a module's own backward might look at them.
  std::function<WeightWork(int stage, int microbatch)> weight_work;
  /// Once a stage's output was taken by all its consumers, only its place in the autograd graph is kept
  /// (released_output.h). Off to compare: it changes memory, and no bit.
  bool release_outputs = true;
  /// What replaces the engine's own way to carry out actions of a kind.
  CustomFunctions custom;
  /// Take the time of every action (StepResult::trace).
  bool trace = false;
  EngineObserver* observer = nullptr;
  /// Puts something in a stage's place, or around it. `state` lives as long as the engine.
  std::function<std::unique_ptr<StageRunner>(int stage, const split::StageState& state, std::unique_ptr<StageRunner>)>
      decorate;
};

/// Seconds on the steady clock, which ranks of one machine share.
struct StepTimes {
  double begin = 0, end = 0;
  double busy = 0;     ///< inside forwards and backwards (whole or in halves) of this rank's stages
  double waiting = 0;  ///< asleep until a message arrived
};

/// What this rank can say about a step.
struct StepResult {
  /// [micro-batch][output], detached; on a rank of the last stage, elsewhere empty. Where the last stage is in several
  /// replicas, nothing for the micro-batches that another rank took.
  std::vector<std::vector<at::Tensor>> outputs;
  /// [micro-batch], detached, not weighted; likewise, undefined for those that another rank took.
  std::vector<at::Tensor> losses;
  StepTimes times;
  /// If asked for: this rank's actions as it carried them out, in seconds as in `times`. An action begins when the
  /// messages it takes have come, so that what lies between two actions is idle time.
  std::vector<schedule::TimedAction> trace;
};

class Engine {
 public:
  /// Throws InputError for a schedule of another number of ranks, for one whose fields contradict one another, and for
  /// a custom function in place of a transfer. Every rank makes its engine with the same schedule, options and model.
  Engine(transport::Transport& transport, schedule::Schedule schedule, PipeSource source, EngineOptions options);
  ~Engine();

  /// One forward and backward of a batch. Each rank gives the same batch: stage 0 reads the inputs, the last stage the
  /// target, and the others only their shapes. Throws InputError where the schedule does not fit the model: another
  /// number of stages, or violations (check.h) given the model's edges.
  StepResult train(const std::vector<at::Tensor>& inputs, const at::Tensor& target);

  /// The same with inputs by name, beside or in place of positional ones.
  StepResult train(const std::vector<at::Tensor>& positional, const std::map<std::string, at::Tensor>& keyword,
                   const at::Tensor& target);

  /// The same with a batch that comes divided. Throws InputError as check_microbatches() does.
  StepResult train(const microbatch::Microbatches& batch);

  /// The outputs of the whole batch, where a step's outputs are (else empty). Throws InputError on a rank that has only
  /// those of its replica.
  std::vector<at::Tensor> merged_outputs(const StepResult& step) const;

  /// One forward without gradients, in evaluation mode.
  StepResult evaluate(const std::vector<at::Tensor>& inputs, const at::Tensor& target);
  StepResult evaluate(const microbatch::Microbatches& batch);

  void zero_grad();

  /// To be called on every rank after requires_grad of the model's parameters, and of those in states(), has changed:
  /// what was planned for other gradients is made anew. Parameters, their gradients and buffers stay.
  void forget_plans();

  /// Parameters and buffers of this rank's stages, under canonical names, as of the first step; ascending by stage.
  const std::map<int, split::StageState>& states() const { return states_; }

 private:
  struct Flight;
  struct Mode;

  StepResult run(bool training, microbatch::Microbatches batch);
  microbatch::Microbatches divided(const std::vector<at::Tensor>& inputs, const at::Tensor& target) const;
  microbatch::Microbatches checked(microbatch::Microbatches batch) const;
  std::vector<double> loss_weights() const;
  Mode& mode_for(bool training, const std::vector<std::vector<at::Tensor>>& microbatches);
  void carry_out_all();
  void carry_out_custom(const CustomFunction& function, std::span<const schedule::Action> actions);
  void carry_out_within(std::span<const schedule::Action> actions, const schedule::Action& action,
                        StageRunner* substitute);
  void carry_out_one(const schedule::Action& action);
  void carry_out(const schedule::Action& action);
  template <class Work>
  void timed(const schedule::Action& action, Work&& work);
  [[noreturn]] void fail_at_position() const;
  void refuse_custom_transfers() const;
  void refuse_written_buffers(const Plan& plan) const;
  void finish_gradients();
  void clear_step();
  void receive_forward(int stage, int microbatch);
  void forward(int stage, int microbatch);
  void send_forward(int stage, int microbatch);
  void receive_backward(int stage, int microbatch);
  void backward(int stage, int microbatch);
  void backward_input(int stage, int microbatch);
  void backward_weight(int stage, int microbatch);
  void send_backward(int stage, int microbatch);
  void wait_send(const schedule::Action& wait);
  /// StageRunner's backward() or backward_input().
  using Pass = decltype(&StageRunner::backward);
  bool pass_back(int stage, int microbatch, Pass pass);
  bool hands_back_gradients(int stage, int microbatch) const;
  void report_partials(int stage, int microbatch);
  template <class Work>
  void compute(int stage, int microbatch, Work&& work);
  at::Tensor output_gradient(int stage, int microbatch, int output);
  void compute_loss(Flight& flight, int microbatch);
  std::vector<int> takers(const Plan& plan, int stage, int replica) const;
  const at::Tensor& live_output(const split::Boundary& boundary, int microbatch);
  void taken(const split::Boundary& boundary, int microbatch);
  void check_outputs(int stage, int microbatch, const std::vector<at::Tensor>& outputs) const;
  void send(const schedule::Action& by, const Departure& departure, int rank, int64_t tag);
  Arrival expect_value(const split::Boundary& boundary, int peer, int64_t tag);
  at::Tensor take(Arrival& arrival, const transport::WaitContext& context);
  void wait(transport::Request& request, const transport::WaitContext& context);
  void release_completed_sends();
  void finish_sends();
  Flight& flight(int stage, int microbatch);
  bool is_local(int stage, int microbatch) const { return rank_of(stage, microbatch) == transport_.rank(); }
  int rank_of(int stage, int microbatch) const { return schedule_.rank_of(stage, microbatch); }
  int replica_of(int microbatch) const {
    return schedule_.replica_of_microbatch.empty() ? 0 : schedule_.replica_of_microbatch[microbatch];
  }

  friend class ActionContext;

  transport::Transport& transport_;
  schedule::Schedule schedule_;
  PipeSource source_;
  EngineOptions options_;
  std::vector<int> my_stages_;
  std::map<int, split::StageState> states_;
  std::map<std::string, std::unique_ptr<Mode>> modes_;
  RandomContext random_;

  // The step under way.
  Mode* mode_ = nullptr;
  bool training_ = false;
  std::vector<Flight> flights_;
  microbatch::Microbatches batch_;
  std::vector<double> loss_weights_;
  StepResult result_;
  struct PendingSend {
    schedule::Action by;
    at::Tensor tensor;
    transport::Request request;
  };
  std::vector<PendingSend> sends_;
  size_t position_ = 0;                // of the action under way
  double action_begin_ = 0;            // for the trace
  StageRunner* substitute_ = nullptr;  // computes in place of the stage's runner
  std::vector<char> carried_out_;      // by action that a custom function was given
};

}  // namespace plumbline::engine
