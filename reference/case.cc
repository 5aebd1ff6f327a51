#include "reference/case.h"

#include <algorithm>

#include "runtime/error.h"

namespace plumbline::reference {

bool requires_gradients(const Case& c, int microbatch) {
  const std::vector<int>& some = c.gradient_microbatches;
  return c.input_gradients && (some.empty() || std::ranges::find(some, microbatch) != some.end());
}

std::string_view to_string(Truth value) {
  switch (value) {
    case Truth::Exact:
      return "exact";
    case Truth::SameOrder:
      return "same-order";
    case Truth::Bounded:
      return "bounded";
  }
  PLUMBLINE_CHECK(false, "a kind of truth without a name: " + std::to_string(static_cast<int>(value)));
  return {};
}

}  // namespace plumbline::reference
