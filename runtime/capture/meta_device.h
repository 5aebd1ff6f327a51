// The meta device: models of any size without their memory.
//
//   std::shared_ptr<Huge> model;
//   {
//     const plumbline::MetaDeviceScope on_meta;
//     model = std::make_shared<Huge>(config);
//   }
//
// A meta tensor has sizes, strides and a type, and no memory. capture() takes a module whose parameters are meta
// tensors as any other: forward runs on shapes alone (shape_rules.h), and its graph is the one of a real device, which
// stands where the graph's device constants say "meta".
#pragma once

#include <ATen/core/stack.h>

#include <memory>
#include <stdexcept>

namespace c10 {
class OperatorHandle;
}

namespace plumbline::capture {

/// While it lives, every tensor that a call on this thread makes is on the meta device, whatever device the call names,
/// and initialisers do nothing. A call that follows the device of a tensor it is given (zeros_like) still does.
///
/// Tensors written as literals (torch::tensor({1, 2})) lose their values. A tensor of one dimension and at most
/// 64 Ki elements may be written through its pointer, to no effect; others throw c10::Error when asked for theirs.
/// For construction: around capture() it is not needed, and there it has no effect.
class MetaDeviceScope {
 public:
  MetaDeviceScope();
  ~MetaDeviceScope();
  MetaDeviceScope(const MetaDeviceScope&) = delete;
  MetaDeviceScope& operator=(const MetaDeviceScope&) = delete;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

namespace detail {

/// An operator met on the meta device that cannot run there; the text says why and what to do.
class NoMetaPath : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A captured forward on the meta device. What forward makes without naming a device it makes on the CPU, with values
/// (so literals are the constants they should be); a call that takes both sees such tensors as meta ones.
class MetaCaptureScope {
 public:
  MetaCaptureScope();
  ~MetaCaptureScope();
  MetaCaptureScope(const MetaCaptureScope&) = delete;
  MetaCaptureScope& operator=(const MetaCaptureScope&) = delete;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Inside a MetaCaptureScope: lets the shape rule of a composition that has one, and is called with a meta tensor,
/// stand for it, and leaves the results on the stack. False where there is nothing to do.
bool stand_in_for_composition(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace detail
}  // namespace plumbline::capture
