// OutputTree: how a model's outputs were nested before they became the flat list Graph::outputs.
#pragma once

#include <string>
#include <vector>

namespace plumbline::graph {

struct OutputTree {
  enum class Kind { Value, Constant, Tuple, List, Dict };
  Kind kind = Kind::Value;
  int output = -1;                ///< Value: its index in Graph::outputs
  std::string constant;           ///< Constant: what it is, for people (an output that no call computed)
  std::vector<OutputTree> items;  ///< Tuple, List, Dict
  std::vector<std::string> keys;  ///< Dict: one for each item
};

}  // namespace plumbline::graph
