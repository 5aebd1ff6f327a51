// The closed set of operators in exported programs.
//
// Their names are ATen's; the table in conformance/INTERPRETING.md, which a test compares with this list, defines their
// meaning. Every other operator is lowered to them or refused: see portable_stage.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumbline::conformance {

/// Incremented when an operator is added, removed or changed.
inline constexpr int kOpset = 1;

struct OpsetEntry {
  std::string_view name;                    ///< "aten::add.Tensor"
  std::vector<std::string_view> arguments;  ///< all of them are exported, in this order
};

/// All operators, by ascending name.
const std::vector<OpsetEntry>& opset();

/// The entry of the operator; null for an operator outside the opset.
const OpsetEntry* find_in_opset(std::string_view name);

}  // namespace plumbline::conformance
