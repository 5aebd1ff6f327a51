// Recompute: which stages, or parts of them (stage_blocks.h), run their forward again in the backward. No torch.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace plumbline::engine {

/// The micro-batches for which a stage is recomputed; after torchgpipe's `checkpoint`. The backward of the last
/// micro-batch often follows soon after its forward, so that recompute gains little there.
enum class Recompute { Never, ExceptLast, Always };

/// In the order of the enumerators.
inline constexpr std::array<std::string_view, 3> kRecomputeWords = {"never", "except-last", "always"};

struct RecomputeOptions {
  Recompute policy = Recompute::Never;
  /// Empty: a stage is one block. Otherwise a module's name ("layers"): every call of a module directly inside that
  /// module (layers.0, layers.1, ...) is a block, and the rest of a stage is not recomputed. A call cut by a stage
  /// border is one block in each stage. During a backward only one block at a time has its intermediate values in
  /// memory.
  std::string blocks_in = {};

  bool on() const { return policy != Recompute::Never; }
};

inline std::string to_string(Recompute policy) { return std::string(kRecomputeWords.at(static_cast<size_t>(policy))); }
/// The inverse of to_string(). Throws InputError for any other text.
Recompute parse_recompute(const std::string& text);

}  // namespace plumbline::engine
