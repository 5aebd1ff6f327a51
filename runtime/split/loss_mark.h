// LossMark: marks the loss among a model's outputs, in a value with the same nesting as the outputs. Equivalent to
// `output_loss_value_spec` of PyTorch's torch.distributed.pipelining (_IR.py), with the same rules.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/output_tree.h"

namespace plumbline::split {

/// `true` marks the loss, `false` any other output or nested outputs. A tuple, list or dict describes an output that is
/// one, item by item:
///
///   LossMark(true)                                       the only output is the loss
///   LossMark::tuple({true, false})                       the first of two
///   LossMark::dict({{"out", false}, {"loss", true}})     the one under "loss"
struct LossMark {
  enum class Kind { Flag, Tuple, List, Dict, Unsupported };
  Kind kind = Kind::Flag;
  bool is_loss = false;           ///< Flag
  std::vector<LossMark> items;    ///< Tuple, List, Dict
  std::vector<std::string> keys;  ///< Dict: the key of each item
  std::string type;               ///< Unsupported: the type of the value, for the error

  /// Accepts only a bool: a string or a number would silently convert.
  template <std::same_as<bool> Flag>
  LossMark(Flag flag) : is_loss(flag) {}

  static LossMark tuple(std::vector<LossMark> items);
  static LossMark list(std::vector<LossMark> items);
  /// Throws InputError naming a repeated key.
  static LossMark dict(std::vector<std::pair<std::string, LossMark>> items);
  /// Stands for a value of a type that no mark may have. find_loss() throws if it reaches this value before the loss.
  static LossMark unsupported(std::string type);
};

/// Returns the index in Graph::outputs of the loss, or nothing if the model has no loss.
///
/// With a mark, the first `true` in the mark's order is the loss; a tuple may match a list and vice versa. Marks after
/// the loss are ignored, but an earlier tuple, list or dict without a `true` is an error. Without a mark, the loss is
/// the value under the key "loss" if the outputs are a dict with that key. With `trivial_loss_wrapper`, the only output
/// is the loss, and the mark is ignored.
///
/// Throws InputError naming the place (outputs[1]["loss"]) if outputs and mark differ in kind, length or keys, if the
/// mark has an unsupported value or no `true`, or if `true` marks a value that the model does not compute.
std::optional<int> find_loss(const graph::OutputTree& outputs, const std::optional<LossMark>& mark,
                             bool trivial_loss_wrapper = false);

}  // namespace plumbline::split
