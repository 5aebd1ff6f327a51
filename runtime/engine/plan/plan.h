// Plan: everything that one rank knows before a step begins: the pipe for each distinct shape of micro-batch, the
// source and shape of each boundary value, and the tags of its messages.
#pragma once

#include <functional>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// Makes the pipe for micro-batches with the shapes of `inputs`, in training or evaluation mode.
using PipeSource = std::function<split::Pipe(bool training, const std::vector<at::Tensor>& inputs)>;

/// A pair of boundary and consuming stage: the value flows forwards, its gradient backwards.
struct Channel {
  int boundary;  ///< index in Pipe::boundaries of the first pipe
  int consumer_stage;
  int consumer_input;  ///< index in the inputs of the consuming stage's graph
};

struct Plan {
  /// One pipe for each distinct shape of micro-batch, all with the same boundaries; whether a gradient returns may
  /// differ. In an evaluation a pipe may end with an earlier stage (SplitOptions::exits_early), and has the boundaries
  /// between its stages; no pipe is longer than the first one.
  std::vector<split::Pipe> pipes;
  /// By micro-batch: the index of its pipe in `pipes`.
  std::vector<int> variants;
  std::vector<Channel> channels;
  /// By stage: the indices in `channels` of the channels that leave the stage, and of the channels that arrive at it
  /// (ascending by boundary, then by consumer).
  std::vector<std::vector<int>> outgoing, incoming;

  /// By pipe, then by channel: the index of its boundary in the pipe; -1 if the pipe ends before its consumer.
  std::vector<std::vector<int>> boundary_of;

  const split::Pipe& pipe(int microbatch) const { return pipes[variants[microbatch]]; }
  /// Whether the micro-batch goes through that stage, and whether it is the last one to do so.
  bool enters(int stage, int microbatch) const { return stage < pipe(microbatch).num_stages(); }
  bool ends_with(int stage, int microbatch) const { return stage + 1 == pipe(microbatch).num_stages(); }
  /// Whether a value of the micro-batch flows through the channel.
  bool carries(int channel, int microbatch) const { return boundary_of[variants[microbatch]][channel] >= 0; }
  /// Precondition: carries().
  const split::Boundary& boundary(int channel, int microbatch) const {
    return pipe(microbatch).boundaries[boundary_of[variants[microbatch]][channel]];
  }
  /// Tags are dense from 0: a forward tag and a backward tag for each (channel, micro-batch).
  int64_t tag_count() const { return forward_tag(static_cast<int>(channels.size()), 0); }
  int64_t forward_tag(int channel, int microbatch) const {
    return int64_t{2} * channel * static_cast<int64_t>(variants.size()) + microbatch;
  }
  int64_t backward_tag(int channel, int microbatch) const {
    return forward_tag(channel, microbatch) + static_cast<int64_t>(variants.size());
  }
};

/// Makes one pipe for each distinct shape among `microbatches` ([micro-batch][input]). Throws InputError if the pipes
/// of two shapes are cut differently, since they could not share a schedule; also if one ends early and trains.
Plan make_plan(const PipeSource& source, bool training, const std::vector<std::vector<at::Tensor>>& microbatches);

/// The distinct stage edges over which values flow, for lowering.
std::vector<schedule::StageEdge> stage_edges(const split::Pipe& pipe);

}  // namespace plumbline::engine
