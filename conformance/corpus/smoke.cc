#include "conformance/corpus/smoke.h"

#include <algorithm>

namespace plumbline::conformance {

const std::vector<SmokeCase>& smoke_cases() {
  static const std::vector<SmokeCase> cases = {
      {"exact-mlp-sum", "zb-v"},
      {"exact-mlp-mean", "1f1b"},
      {"mlp", "interleaved-1f1b"},
      {"exact-uneven-rows", "1f1b"},
      {"exact-tied-accumulate", "zb-v"},
      {"exact-accumulate", "interleaved-1f1b"},
      {"exact-multi-io", "interleaved-1f1b"},
      {"exact-skip", "1f1b"},
      {"exact-late-input", "zb-v"},
      {"exact-shared-ends", "zb-v"},
      {"exact-experts", "1f1b"},
      {"exact-encoder-decoder", "interleaved-1f1b"},
      {"exact-eval-without-target", "zb-v"},
      {"exact-hooks-after-steps", "zb-v"},
      {"exact-added-losses", "interleaved-1f1b"},
      {"exact-local-losses-user", "1f1b"},
      {"transformer-lm", "zb-v"},
      {"resnet-bn-eval", "1f1b"},
      {"dropout", "zb-v"},
      {"train-mlp", "1f1b"},
      {"clip", "interleaved-1f1b"},
      {"skip-overflow", "interleaved-1f1b"},
      {"exact-resume-momentum", "zb-v"},
      {"exact-dp-mlp", "zb-v"},
  };
  return cases;
}

bool is_smoke(std::string_view case_id, std::string_view schedule) {
  return std::ranges::any_of(smoke_cases(), [&](const SmokeCase& c) {
    return c.id == case_id && (schedule == "gpipe" || schedule == c.other);
  });
}

}  // namespace plumbline::conformance
