// OutputTree: the nesting of a model's outputs before they became the flat list Graph::outputs.
#pragma once

#include <string>
#include <vector>

namespace plumbline::graph {

struct OutputTree {
  enum class Kind { Value, Constant, Tuple, List, Dict };
  Kind kind = Kind::Value;
  int output = -1;                ///< Value: the index in Graph::outputs
  std::string constant;           ///< Constant: an output that no call computed, as text to display
  std::vector<OutputTree> items;  ///< Tuple, List, Dict: the elements
  std::vector<std::string> keys;  ///< Dict: one for each item
};

}  // namespace plumbline::graph
