#include "runtime/split/device.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "runtime/graph/attributes.h"

namespace plumbline::split {
namespace {

class Mover {
 public:
  Mover(c10::Device device, MetaTensors meta) : device_(device), meta_(meta) {}

  void move(graph::Graph& graph) {
    const c10::AutoGradMode no_grad(false);
    graph::for_each_attribute(std::as_const(graph), [&](const graph::Attribute& attribute, int) {
      if (stays(attribute.tensor)) return;
      originals_.push_back(attribute.tensor);
      tensors_of_[attribute.tensor.storage().unsafeGetStorageImpl()].insert(attribute.tensor.unsafeGetTensorImpl());
    });
    graph::for_each_attribute(graph, [&](graph::Attribute& attribute, int) {
      if (!stays(attribute.tensor)) attribute.tensor = moved(attribute.tensor);
    });
    rewrite(graph);
  }

 private:
  bool stays(const at::Tensor& tensor) const {
    if (!tensor.defined() || (tensor.is_meta() && meta_ == MetaTensors::Keep)) return true;
    const c10::Device here = tensor.device();
    return here.type() == device_.type() && (!device_.has_index() || here.index() == device_.index());
  }

  at::Tensor moved(const at::Tensor& tensor) {
    at::Tensor& result = moved_[tensor.unsafeGetTensorImpl()];
    if (result.defined()) return result;
    const auto* storage = tensor.storage().unsafeGetStorageImpl();
    result = tensors_of_[storage].size() > 1 ? view_of_moved_storage(tensor) : alone(tensor.detach());
    return result.requires_grad_(tensor.requires_grad());
  }

  at::Tensor alone(const at::Tensor& tensor) const {
    if (tensor.is_meta() && !device_.is_meta()) return at::zeros_like(tensor, tensor.options().device(device_));
    return tensor.to(device_);
  }

  /// Tensors that share memory: the whole of it is moved once, as bytes.
  at::Tensor view_of_moved_storage(const at::Tensor& tensor) {
    at::Tensor& bytes = moved_storages_[tensor.storage().unsafeGetStorageImpl()];
    if (!bytes.defined())
      bytes = alone(at::empty({0}, tensor.options().dtype(at::kByte).requires_grad(false)).set_(tensor.storage()));
    return at::empty({0}, tensor.options().device(device_).requires_grad(false))
        .set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  }

  void rewrite(graph::Graph& graph) {
    if (!device_.is_meta())
      for (graph::AutocastRegion& region : graph.autocast)
        if (region.device == c10::DeviceType::CPU) region.device = device_.type();
    for (graph::Node& node : graph.nodes) {
      for (size_t i = 0; i < node.arguments.size(); ++i) {
        c10::IValue& constant = node.arguments[i].constant;
        constant = rewritten(constant);
        if (node.op->schema().arguments()[i].name() == "pin_memory" && constant.isBool() && !device_.is_cpu())
          constant = false;
      }
      for (auto& branch : node.branches) {
        auto copy = std::make_shared<graph::Graph>(*branch);
        rewrite(*copy);
        branch = std::move(copy);
      }
    }
  }

  c10::IValue rewritten(const c10::IValue& constant) const {
    if (constant.isDevice()) return device_;
    const auto is_device = [](const c10::IValue& item) { return item.isDevice(); };
    if (!constant.isList() || std::ranges::none_of(constant.toListRef(), is_device)) return constant;
    c10::impl::GenericList list = constant.toList().copy();
    for (size_t i = 0; i < list.size(); ++i) list.set(i, rewritten(list.get(i)));
    return list;
  }

  c10::Device device_;
  MetaTensors meta_;
  std::vector<at::Tensor> originals_;  // kept until the end: tensors are told apart by their addresses
  std::unordered_map<const c10::StorageImpl*, std::unordered_set<const c10::TensorImpl*>> tensors_of_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> moved_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> moved_storages_;
};

}  // namespace

void move_to_device(graph::Graph& graph, c10::Device device, MetaTensors meta) { Mover(device, meta).move(graph); }

}  // namespace plumbline::split
