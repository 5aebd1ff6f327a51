#include "reference/case.h"

#include "runtime/error.h"

namespace plumbline::reference {

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
