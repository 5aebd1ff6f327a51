// The backward of a partition: whole or in halves, with the gradients of all outputs or of some. Thread safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/run/program.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

class BackwardRunner {
 public:
  /// `missing`: by tangent, which of them are never given (missing_tangents.h). The partition and the constants must
  /// outlive the runner, which keeps no copy of them.
  BackwardRunner(const Partition& partition, const std::vector<char>& missing,
                 const std::map<std::string, at::Tensor>& constants);

  /// Whether some call takes that tangent: then it is given even where it is missing, as zeros.
  bool takes(NodeIndex tangent) const { return taken_[tangent]; }

  /// `inputs` are those of Partition::backward; fills one gradient for each primal, undefined where there is none.
  void run(std::vector<at::Tensor> inputs, std::vector<at::Tensor>& gradients, std::vector<at::Tensor>& states);

  /// The gradients of the primals `wanted`, and what the second half goes on from.
  void run_first(const std::vector<char>& wanted, std::vector<at::Tensor> inputs, std::vector<at::Tensor>& gradients,
                 std::vector<at::Tensor>& carried, std::vector<at::Tensor>& states);
  /// The other gradients. `wanted` as the first half had it.
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
  std::vector<char> taken_;     // by node
  std::vector<char> borrowed_;  // by primal: its gradient shares memory with a saved value or another gradient
  std::mutex programs_;         // of the two below, which are made at their first use
  std::optional<graph::Program> whole_;
  std::map<std::vector<char>, Halves> halves_;
};

}  // namespace plumbline::partition
