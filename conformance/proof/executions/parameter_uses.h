// ParameterUses: the gradients of a backward by parameter and stage. Autograd sums a parameter's uses over the whole
// model; a pipeline sums them stage by stage, so the uses are taken where autograd's nodes deliver them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace plumbline::proof {

class ParameterUses {
 public:
  /// Registers hooks on each autograd node that delivers a gradient to one of `parameters` in the backward of `roots`.
  /// `stage_of` gives the stage of a node by its sequence number.
  ParameterUses(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& parameters,
                const std::function<int(uint64_t)>& stage_of);

  /// After the backward: the gradients from the uses in `stage`, by index in `parameters`. Uses are summed in the order
  /// in which autograd delivered them.
  std::map<size_t, at::Tensor> gradients(int stage) const;

  /// The gradients of all uses, in an order that depends on the graph alone.
  std::vector<at::Tensor> all() const;
  /// The same uses with the gradients of another backward of the same graph, which are given in the order of all().
  ParameterUses with(std::span<const at::Tensor> gradients) const;

 private:
  struct Delivered;
  explicit ParameterUses(std::shared_ptr<Delivered> delivered) : delivered_(std::move(delivered)) {}
  std::shared_ptr<Delivered> delivered_;
};

}  // namespace plumbline::proof
