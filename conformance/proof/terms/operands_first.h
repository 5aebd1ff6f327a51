// The terms below a term, in an order in which operands come before the terms that use them.
#pragma once

#include <utility>
#include <vector>

#include "conformance/proof/terms/term.h"

namespace plumbline::proof {

/// Calls visit(id, term) for `root` and all terms below it, except those for which is_known(id) is true. `visit` must
/// make it true for its term.
template <class IsKnown, class Visit>
void visit_operands_first(const Terms& terms, const TermId& root, const IsKnown& is_known, const Visit& visit) {
  std::vector<std::pair<TermId, bool>> open = {{root, false}};  // with whether its operands were visited
  while (!open.empty()) {
    const auto [id, ready] = open.back();
    open.pop_back();
    if (is_known(id)) continue;
    const Term term = terms.at(id);
    if (ready || term.operands.empty()) {
      visit(id, term);
      continue;
    }
    open.emplace_back(id, true);
    for (const TermId& operand : term.operands) open.emplace_back(operand, false);
  }
}

}  // namespace plumbline::proof
