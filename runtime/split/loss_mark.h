// LossMark: which of a model's outputs is the loss, written in the outputs' own nesting. It is the
// `output_loss_value_spec` of PyTorch's torch.distributed.pipelining (_IR.py), with the same rules.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/output_tree.h"

namespace plumbline::split {

/// `true` marks the loss, `false` anything else, and a tuple, list or dict goes into an output that is one:
///
///   LossMark(true)                                       the only output is the loss
///   LossMark::tuple({true, false})                       the first of two
///   LossMark::dict({{"out", false}, {"loss", true}})     the one under "loss"
struct LossMark {
  enum class Kind { Flag, Tuple, List, Dict, Unsupported };
  Kind kind = Kind::Flag;
  bool is_loss = false;           ///< Flag
  std::vector<LossMark> items;    ///< Tuple, List, Dict
  std::vector<std::string> keys;  ///< Dict: one for each item
  std::string type;               ///< Unsupported: its type, for the error

  /// From a bool only: a string or a number would silently convert.
  template <std::same_as<bool> Flag>
  LossMark(Flag flag) : is_loss(flag) {}

  static LossMark tuple(std::vector<LossMark> items);
  static LossMark list(std::vector<LossMark> items);
  /// Throws InputError naming a repeated key.
  static LossMark dict(std::vector<std::pair<std::string, LossMark>> items);
  /// A value in a spec that is none; find_loss() refuses it if it matters.
  static LossMark unsupported(std::string type);
};

/// The index in Graph::outputs of the loss, or nothing if the model has none.
///
/// With a mark, the first `true` in its order is the loss; a tuple may match a list and vice versa. Marks after the
/// loss are ignored, but an earlier tuple, list or dict without a `true` is an error. Without a mark, it is the value
/// under the key "loss" if the outputs are a dict that has one. The only output of a TrivialLossWrapper is the loss,
/// whatever the mark.
///
/// Throws InputError naming the place (outputs[1]["loss"]): outputs and mark differ in kind, length or keys; an
/// unsupported mark; `true` for something that is no computed value; a mark without a loss.
std::optional<int> find_loss(const graph::OutputTree& outputs, const std::optional<LossMark>& mark,
                             bool trivial_loss_wrapper = false);

}  // namespace plumbline::split
