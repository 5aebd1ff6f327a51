// The meta device: models of any size without their memory.
//
//   std::shared_ptr<Huge> model;
//   {
//     const plumbline::capture::MetaDeviceScope on_meta;
//     model = std::make_shared<Huge>(config);
//   }
//
// A meta tensor has sizes, strides and a type, but no memory. capture() accepts a module with meta tensors like any
// other: forward runs on shapes alone (shape_rules.h), and the graph equals the graph of a real device, except that its
// device constants are "meta".
#pragma once

#include <ATen/core/stack.h>

#include <memory>
#include <stdexcept>

namespace c10 {
class OperatorHandle;
}

namespace plumbline::capture {

/// During the lifetime of the scope, operators of this thread create new tensors on the meta device, whatever device
/// the call names, and initialisers do nothing. A call without a device that takes a tensor (zeros_like) still follows
/// the tensor's device. An operator without a meta kernel or a shape rule throws InputError.
///
/// Tensors written as literals (torch::tensor({1, 2})) lose their values. For tensors made by at::empty: one dimension
/// and at most 65536 elements may be written through the data pointer, without effect; otherwise mutable_data_ptr()
/// throws c10::Error. For the construction of modules; capture() does not need this scope.
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

/// An operator cannot run on the meta device; the text names the reason and a remedy. capture() turns it into
/// CaptureError.
class NoMetaPath : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// During the lifetime of the scope, operators of this thread with a meta tensor or the meta device among their
/// arguments run on the meta device; their other tensor arguments are presented as meta tensors. Tensors made without a
/// named device are on the CPU, with values, so that literals become the right constants. Scopes do not nest.
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

/// Runs a call on the meta device, or its shape rule; tensor arguments that have memory are presented as meta tensors.
/// For interposers, in their call(). Throws NoMetaPath.
void run_on_meta_device(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// Inside a MetaCaptureScope: if `op` is a composition with a shape rule and has a meta argument, runs the rule in
/// place of the composition, replaces the arguments on the stack by the results and returns true. Otherwise returns
/// false.
bool stand_in_for_composition(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace detail
}  // namespace plumbline::capture
