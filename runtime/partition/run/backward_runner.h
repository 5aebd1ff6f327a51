// Runs the backward of a partition, whole or in two halves, with gradients for all outputs of the forward or for some.
// Runs below autograd.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/run/program.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Thread-safe; several backwards may run at the same time, each with separate vectors. Programs are lowered at their
/// first use, which throws InputError as lower() does.
class BackwardRunner {
 public:
  /// `missing`: for each tangent, in graph order, whether it is never given (missing_tangents.h). `constants` are those
  /// of JointTrace. The runner refers to `partition` and `constants`, which must outlive it.
  BackwardRunner(const Partition& partition, const std::vector<char>& missing,
                 const std::map<std::string, at::Tensor>& constants);

  /// Whether a call reads the tangent. If so, the caller must pass zeros for it even if it is missing.
  bool takes(NodeIndex tangent) const { return taken_[tangent]; }

  /// Runs the whole backward. `inputs`: one for each of Partition::backward.inputs, undefined for numbers and for
  /// missing tangents that no call reads; moved-in tensors are released at their last use. Replaces `gradients` by one
  /// for each primal, undefined for None. `states`: the random states that the forward recorded.
  void run(std::vector<at::Tensor> inputs, std::vector<at::Tensor>& gradients, std::vector<at::Tensor>& states);

  /// Runs the first half: makes the gradients of the primals whose flag in `wanted` is set; the others are undefined.
  /// Replaces `carried` by the values that the second half needs.
  void run_first(const std::vector<char>& wanted, std::vector<at::Tensor> inputs, std::vector<at::Tensor>& gradients,
                 std::vector<at::Tensor>& carried, std::vector<at::Tensor>& states);
  /// Runs the second half: makes the other gradients. `wanted`, `carried` and `states` are those of the first half.
  void run_second(const std::vector<char>& wanted, std::vector<at::Tensor> carried, std::vector<at::Tensor>& gradients,
                  std::vector<at::Tensor>& states);

 private:
  struct Halves {
    graph::Program input, weight;
    size_t carried;
  };
  graph::Program program_of(const Partition& partition, const Subgraph& part) const;
  const graph::Program& whole();
  const Halves& halves_of(const std::vector<char>& wanted);
  void scatter(const std::vector<char>& wanted, char half, std::vector<at::Tensor>& made,
               std::vector<at::Tensor>& gradients) const;
  void own_memory(std::vector<at::Tensor>& gradients) const;

  const Partition& partition_;
  const std::vector<char> missing_;
  const std::map<std::string, at::Tensor>& constants_;
  std::vector<char> taken_;     // indexed by NodeIndex: a call of the backward reads the node
  std::vector<char> borrowed_;  // by primal: its gradient shares memory with a saved value or another gradient
  std::mutex programs_;         // guards the two members below
  std::optional<graph::Program> whole_;
  std::map<std::vector<char>, Halves> halves_;  // by `wanted`
};

}  // namespace plumbline::partition
