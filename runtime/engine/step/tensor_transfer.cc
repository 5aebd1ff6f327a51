#include "runtime/engine/step/tensor_transfer.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "runtime/graph/host_tensors.h"

namespace plumbline::engine {
namespace {

bool is_expanded(const at::Tensor& tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.stride(d) == 0 && tensor.size(d) > 1) return true;
  return false;
}

/// One of each of the rows that an expanded tensor repeats.
at::Tensor without_repeats(at::Tensor tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.stride(d) == 0 && tensor.size(d) > 1) tensor = tensor.narrow(d, 0, 1);
  return tensor;
}

at::Tensor dense(const at::Tensor& tensor) {
  const at::Tensor own = graph::with_own_values(tensor);
  return own.is_non_overlapping_and_dense() ? own : own.clone(at::MemoryFormat::Preserve);
}

at::Tensor with_strides(at::IntArrayRef strides) {
  at::Tensor out = at::empty({static_cast<int64_t>(strides.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(strides.begin(), strides.end(), out.mutable_data_ptr<int64_t>());
  return out;
}

}  // namespace

at::Tensor in_transfer_layout(const at::Tensor& tensor, bool keep_strides) {
  const at::Tensor detached = tensor.detach();
  if (!keep_strides) return graph::with_own_values(detached).contiguous();
  if (!is_expanded(detached)) return dense(detached);
  return dense(without_repeats(detached)).expand(detached.sizes());
}

at::Tensor copied_in_transfer_layout(const at::Tensor& tensor, bool keep_strides) {
  const at::Tensor passed = in_transfer_layout(tensor, keep_strides);
  if (!passed.is_alias_of(tensor)) return passed;
  return without_repeats(passed).clone(at::MemoryFormat::Preserve).expand(passed.sizes());
}

OutgoingTensor make_outgoing(const at::Tensor& tensor, bool keep_strides) {
  if (!keep_strides || tensor.dim() == 0) return {tensor, {}};
  // An expanded tensor is sent with all its rows, since the receiver knows the size beforehand.
  if (is_expanded(tensor)) return {tensor.contiguous(), with_strides(tensor.strides())};
  return {tensor, with_strides(tensor.strides())};
}

PendingReceive post_receive(transport::Transport& transport, const at::TensorOptions& options, at::IntArrayRef sizes,
                            int peer, int64_t tag, int64_t strides_tag, bool keep_strides) {
  PendingReceive receive;
  receive.body = at::empty(sizes, options);
  receive.body_request = transport.irecv(receive.body.mutable_data_ptr(), receive.body.nbytes(), peer, tag);
  if (!keep_strides || sizes.empty()) return receive;
  receive.strides = at::empty({static_cast<int64_t>(sizes.size())}, at::TensorOptions().dtype(at::kLong));
  receive.strides_request =
      transport.irecv(receive.strides.mutable_data_ptr(), receive.strides.nbytes(), peer, strides_tag);
  return receive;
}

at::Tensor received_tensor(PendingReceive&& receive) {
  const at::Tensor body = std::move(receive.body);
  if (!receive.strides.defined()) return body;
  const at::Tensor keeper = std::move(receive.strides);
  const at::IntArrayRef strides(keeper.const_data_ptr<int64_t>(), static_cast<size_t>(keeper.numel()));
  if (strides == body.strides()) return body;
  bool expanded = false;
  for (int64_t d = 0; d < body.dim(); ++d) expanded = expanded || (strides[d] == 0 && body.size(d) > 1);
  if (!expanded) return body.as_strided(body.sizes(), strides);
  at::Tensor one = body;
  for (int64_t d = 0; d < body.dim(); ++d)
    if (strides[d] == 0 && body.size(d) > 1) one = one.narrow(d, 0, 1);
  // In the order of in_transfer_layout(): the largest stride first.
  std::vector<int64_t> order(body.dim()), back(body.dim());
  for (int64_t d = 0; d < body.dim(); ++d) order[d] = d;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  for (int64_t d = 0; d < body.dim(); ++d) back[order[d]] = d;
  return one.permute(order).contiguous().permute(back).expand(body.sizes());
}

}  // namespace plumbline::engine
