// Layers for tests of skips: they stash or pop the names given to their constructors.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <utility>

#include "runtime/skip/skippable.h"

namespace plumbline::skip {

/// Stashes its input under each of its names to stash, pops each of its names to pop, and adds the popped tensors.
class LayerBody : public torch::nn::Module {
 public:
  explicit LayerBody(SkipNames names) : skips(std::move(names)) {}
  SkipForward<> forward(at::Tensor x);

  const SkipNames skips;
};
using Layer = Skippable<LayerBody>;

inline std::shared_ptr<Layer> stashing(const std::string& name) { return skippable<LayerBody>(SkipNames{{name}, {}}); }
inline std::shared_ptr<Layer> popping(const std::string& name) { return skippable<LayerBody>(SkipNames{{}, {name}}); }
inline std::shared_ptr<Layer> layer(SkipNames names) { return skippable<LayerBody>(std::move(names)); }

/// Neither stashes nor pops.
class Plain : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& x) { return x; }
};

}  // namespace plumbline::skip
