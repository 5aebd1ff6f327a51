#include "runtime/engine/stage/recompute_options.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/text/join.h"

namespace plumbline::engine {

Recompute parse_recompute(const std::string& text) {
  const auto found = std::ranges::find(kRecomputeWords, text);
  if (found == kRecomputeWords.end())
    throw InputError("--recompute: '" + text + "' is none of " + join(kRecomputeWords));
  return static_cast<Recompute>(found - kRecomputeWords.begin());
}

}  // namespace plumbline::engine
