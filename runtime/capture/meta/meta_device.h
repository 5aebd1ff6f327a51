// The meta device: models of any size without their memory.
//
//   std::shared_ptr<Huge> model;
//   {
//     const plumbline::MetaDeviceScope on_meta;
//     model = std::make_shared<Huge>(config);
//   }
//
// A meta tensor has sizes, strides and a type, but no memory. capture() accepts a module whose parameters are meta
// tensors like any other: forward runs on shapes alone (shape_rules.h), and the graph is that of a real device, except
// that its device constants are "meta".
#pragma once

#include <ATen/core/stack.h>

#include <memory>
#include <stdexcept>

namespace c10 {
class OperatorHandle;
}

namespace plumbline::capture {

/// While it lives, every new tensor of this thread's calls is on the meta device, whatever device the call names, and
/// initialisers do nothing. A call that follows the device of an argument (zeros_like) still does.
///
/// Tensors written as literals (torch::tensor({1, 2})) lose their values. A tensor of one dimension and at most 64 Ki
/// elements may be written through its pointer, without effect; others throw c10::Error when asked for their pointer.
/// For construction only: capture() does not need it and ignores it.
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

/// An operator that cannot run on the meta device; the text says why and how to solve it.
class NoMetaPath : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs a captured forward on the meta device. Tensors made without a named device are on the CPU, with values (so
/// literals become the right constants); a call with tensors of both kinds sees them all as meta.
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

/// Inside a MetaCaptureScope: if a composition has a shape rule and a meta tensor among its arguments, runs the rule in
/// its place and leaves the results on the stack. Otherwise returns false.
bool stand_in_for_composition(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace detail
}  // namespace plumbline::capture
