// Capture: records the ATen calls that a module's forward makes, above autograd, as a Graph.
//
// A boxed fallback on a dispatch key above Autograd and Autocast sees each call of the model whole (layer_norm,
// scaled_dot_product_attention, cross_entropy_loss stay single nodes, so that autograd differentiates the replay
// exactly like the original). Tensors are identified by their TensorImpl, of which only weak references are kept: a
// strong reference would change the behaviour of LibTorch's factories and keep every activation alive.
//
// Forward runs once, on the given inputs, with gradients enabled. Afterwards the buffers, the parameters and the
// default random generator are restored, also after an exception. A capture is a RandomTurn (random_turn.h): captures
// on several threads run one after another, and none may be made inside another capture or turn.
//
// A forward that cannot be captured faithfully is refused by a CaptureError that names the operator and the module: a
// number read from a tensor, a custom autograd Function or requires_grad_() in forward, memory shared behind autograd's
// back (.data()), one tensor given as two inputs, an in-place change of an input or of a tensor made outside the
// dispatcher (torch::tensor(), a member that is not registered), an explicit random generator. Effects that the
// dispatcher cannot see are not detected: reads and writes through data_ptr() or an accessor, computation on other
// threads, manual_seed(), and state kept by assigning a new tensor to a member. A literal such as at::tensor({1, 2}),
// which LibTorch writes through a pointer, becomes a constant where it is first read; if forward writes a part of it
// before (t[0].copy_(x)), the rest is lost: clone() it first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/graph/graph.h"

namespace torch::nn {
class Module;
}

namespace plumbline::capture {

/// Forward cannot be captured faithfully; the text names the reason, the place and a remedy.
class CaptureError : public InputError {
 public:
  using InputError::InputError;
};

/// A tensor and its name: an input, or a parameter or buffer under its qualified name.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Runs a forward on the inputs, in their order, and returns all outputs.
using ForwardFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// Captures a run of `forward` on `inputs`. Parameters, buffers and modules have the names under which `module`
/// registers them. The graph is specialised to the shapes of the inputs and to the module's training mode, and shares
/// the module's parameters and buffers. Throws CaptureError for an input that is undefined, occurs twice, or is a
/// parameter or buffer, for a buffer that is not dense, and for a forward that is refused (see above); exceptions of
/// forward propagate.
graph::Graph capture(const torch::nn::Module& module, const ForwardFunction& forward,
                     const std::vector<NamedTensor>& inputs);

}  // namespace plumbline::capture
