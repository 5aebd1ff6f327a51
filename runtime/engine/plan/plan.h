// Plan: everything that one rank knows before a step begins: the pipe for each shape of micro-batch, the source and
// shape of each value, and the tag of its messages.
#pragma once

#include <functional>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// Makes the pipe for micro-batches like `inputs`, in training or evaluation mode.
using PipeSource = std::function<split::Pipe(bool training, const std::vector<at::Tensor>& inputs)>;

/// One (boundary, consuming stage): values flow along it forwards, gradients backwards.
struct Channel {
  int boundary;
  int consumer_stage;
  int consumer_input;
};

struct Plan {
  /// One for each distinct shape of micro-batch, all with the same boundaries.
  std::vector<split::Pipe> pipes;
  /// The index in `pipes` for each micro-batch.
  std::vector<int> variants;
  std::vector<Channel> channels;
  /// By stage: the channels that leave it and those that arrive at it (ascending by boundary, then consumer).
  std::vector<std::vector<int>> outgoing, incoming;

  const split::Pipe& pipe(int microbatch) const { return pipes[variants[microbatch]]; }
  const split::Boundary& boundary(int channel, int microbatch) const {
    return pipe(microbatch).boundaries[channels[channel].boundary];
  }
  /// Tags are dense from 0: a forward and a backward one for each (channel, micro-batch).
  int64_t tag_count() const { return forward_tag(static_cast<int>(channels.size()), 0); }
  int64_t forward_tag(int channel, int microbatch) const {
    return int64_t{2} * channel * static_cast<int64_t>(variants.size()) + microbatch;
  }
  int64_t backward_tag(int channel, int microbatch) const {
    return forward_tag(channel, microbatch) + static_cast<int64_t>(variants.size());
  }
};

/// Captures the missing pipes: each distinct shape among `microbatches` once. Throws InputError when the pipes of two
/// shapes are cut differently, so that they could not share a schedule.
Plan make_plan(const PipeSource& source, bool training, const std::vector<std::vector<at::Tensor>>& microbatches);

/// The stage edges over which values flow, for lowering.
std::vector<schedule::StageEdge> stage_edges(const split::Pipe& pipe);

}  // namespace plumbline::engine
