#include "runtime/engine/stage/recompute_options.h"

#include "runtime/error.h"

namespace plumbline::engine {

std::string to_string(Recompute policy) {
  if (policy == Recompute::Never) return "never";
  return policy == Recompute::ExceptLast ? "except-last" : "always";
}

Recompute parse_recompute(const std::string& text) {
  for (const Recompute policy : {Recompute::Never, Recompute::ExceptLast, Recompute::Always})
    if (text == to_string(policy)) return policy;
  throw InputError("--recompute: '" + text + "' is none of never, except-last, always");
}

}  // namespace plumbline::engine
