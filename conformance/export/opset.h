// The closed set of operators that an exported program consists of.
//
// The names are ATen's, the meaning is that of the table in conformance/INTERPRETING.md, which lists exactly these (a
// test holds one against the other). Everything else is lowered to them or refused: see lower_node.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumbline::conformance {

/// Rises when an operator is added, removed or changed.
inline constexpr int kOpset = 1;

struct OpsetEntry {
  std::string_view name;                    ///< "aten::add.Tensor"
  std::vector<std::string_view> arguments;  ///< all of them are written, in this order
};

/// By name, ascending.
const std::vector<OpsetEntry>& opset();

/// Null for an operator outside.
const OpsetEntry* find_in_opset(std::string_view name);

}  // namespace plumbline::conformance
