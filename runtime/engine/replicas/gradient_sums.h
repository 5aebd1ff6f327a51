// GradientSums: sums the gradients of a parameter's copies, without blocking until a sum is needed.
//
// Every rank with a copy sends its gradient to the ranks with the other copies and computes the sum itself, in
// ascending order of (stage, replica), so that all copies get the same bits. This takes more messages than a tree and
// needs no rank to be the owner: a rank only waits for the others to begin.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "runtime/engine/replicas/parameter_copies.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

class GradientSums {
 public:
  /// All references must outlive this object, which serves one step. `parameters` are those of parameter_copies().
  GradientSums(const std::map<int, split::StageState>& states, const std::vector<ParameterCopies>& parameters,
               transport::Transport& transport, const CopyTags& tags)
      : states_(states), parameters_(parameters), transport_(transport), tags_(tags) {}

  /// Begins the sums of the parameters that `stage` alone uses; their gradients must not change until finish(). Every
  /// rank that holds the stage calls it. Does not block.
  void begin(int stage);

  /// Waits for the sums that begin(stage) has begun, and sets every copy's .grad to its sum: a copy without a gradient
  /// contributes nothing, and if no copy has one, all stay without. Does nothing if none has begun, or if they have
  /// been finished. Throws as Transport::wait() does.
  void finish(int stage, const transport::Deadline& deadline);

  /// Finishes all sums, including those that no call has begun. Every rank calls it, at the end of its step.
  void finish_all(const transport::Deadline& deadline);

 private:
  struct Message {
    uint8_t present = 0;
    at::Tensor body;
    transport::Request flag_request, body_request;
  };
  /// The sum of one parameter in progress. It must not be copied: transfers write into it.
  struct Sum {
    const ParameterCopies* of = nullptr;
    std::deque<Message> sent;      // memory of messages must stay where it is
    std::deque<Message> received;  // by copy; empty for this rank's own
  };

  void begin(const ParameterCopies& parameter, std::deque<Sum>& into, int64_t tag);
  void finish(std::deque<Sum>& sums, const transport::Deadline& deadline);
  const at::Tensor& copy_of(const ParameterCopies& parameter, const ParameterCopies::Copy& copy) const {
    return states_.at(copy.stage).parameters.at(parameter.name);
  }
  bool is_mine(const ParameterCopies::Copy& copy) const { return copy.rank == transport_.rank(); }

  const std::map<int, split::StageState>& states_;
  const std::vector<ParameterCopies>& parameters_;
  transport::Transport& transport_;
  const CopyTags tags_;
  std::map<int, std::deque<Sum>> of_stage_;  // begun; empty once finished
};

}  // namespace plumbline::engine
