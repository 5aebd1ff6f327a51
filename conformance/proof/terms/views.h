// Views: the elements that the views of one rank choose, each choice computed once, since micro-batches repeat it.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "conformance/proof/terms/layout.h"
#include "conformance/proof/terms/picks.h"

namespace plumbline::proof {

class Views {
 public:
  using Shared = std::shared_ptr<const Picks>;

  /// The elements of the base that the view shows; null if it shows memory outside of the base, or if elements of the
  /// base share memory.
  Shared between(const Layout& base, const Layout& view);
  /// The elements of `before`, which may be null for all, at the positions of `after`.
  Shared both(const Shared& before, const Shared& after);

 private:
  struct PairHash {
    size_t operator()(const std::pair<Shared, Shared>& pair) const {
      return std::hash<Shared>()(pair.first) * 31 + std::hash<Shared>()(pair.second);
    }
  };
  std::unordered_map<std::string, Shared> between_;
  std::unordered_map<std::pair<Shared, Shared>, Shared, PairHash> both_;
};

}  // namespace plumbline::proof
