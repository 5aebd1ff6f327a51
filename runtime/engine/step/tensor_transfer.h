// The transfer of a tensor between ranks: its elements and its strides.
//
// Either every tensor is passed contiguous, or every tensor keeps the order of its dimensions in memory
// (`keep_strides`). A kernel's order of summation depends on strides, so only the second choice gives the bits of the
// uncut model; it costs an additional small message per tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// Returns `tensor` in the layout in which it is passed: detached and contiguous or, with `keep_strides`, dense in the
/// order of its own strides (expanded dimensions keep stride 0). Copies only a tensor that has another layout, and one
/// whose memory does not hold its values (Tensor::is_conj, is_neg).
at::Tensor in_transfer_layout(const at::Tensor& tensor, bool keep_strides);

/// Returns the same tensor, always in memory of its own.
at::Tensor copied_in_transfer_layout(const at::Tensor& tensor, bool keep_strides);

/// The messages of a tensor: its elements in memory order, and its strides.
struct OutgoingTensor {
  at::Tensor body;
  at::Tensor strides;  ///< i64[dimensions]; undefined without keep_strides or without dimensions
};
/// Returns the messages of `tensor`, which must be a result of in_transfer_layout().
OutgoingTensor make_outgoing(const at::Tensor& tensor, bool keep_strides);

/// The posted receives of a tensor; requests are empty once complete.
struct PendingReceive {
  at::Tensor body, strides;
  transport::Request body_request, strides_request;
};

/// Posts the receives of a tensor with these options and sizes; `strides_tag` is used only with `keep_strides`.
PendingReceive post_receive(transport::Transport& transport, const at::TensorOptions& options, at::IntArrayRef sizes,
                            int peer, int64_t tag, int64_t strides_tag, bool keep_strides);

/// Returns the received tensor, with the sender's strides if they were sent. Call after both requests are complete.
at::Tensor received_tensor(PendingReceive&& receive);

}  // namespace plumbline::engine
