// A tensor in transit between ranks: its elements and its strides.
//
// Either every tensor crosses contiguous, or it keeps the order of its dimensions in memory. A kernel's order of
// summation depends on strides, so only the second gives the bits of the uncut model; it costs an additional small
// message.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// `tensor` as it crosses: detached and contiguous; or, if strides are kept, dense in the order of its own strides
/// (dimensions of stride 0 keep it). Copies only a tensor with another layout.
at::Tensor in_transfer_layout(const at::Tensor& tensor, bool keep_strides);

/// The messages of a tensor: its elements in memory order, and its strides.
struct OutgoingTensor {
  at::Tensor body;
  at::Tensor strides;  ///< i64[dimensions]; undefined unless strides are kept
};
/// `tensor` is in transfer layout.
OutgoingTensor make_outgoing(const at::Tensor& tensor, bool keep_strides);

/// The receives of a tensor, posted and possibly incomplete.
struct PendingReceive {
  at::Tensor body, strides;
  transport::Request body_request, strides_request;
};

/// Posts the receives of a tensor of this dtype and these sizes; `strides_tag` is used only if strides are kept.
PendingReceive post_receive(transport::Transport& transport, at::ScalarType dtype, at::IntArrayRef sizes, int peer,
                            int64_t tag, int64_t strides_tag, bool keep_strides);

/// The tensor, once both requests are complete.
at::Tensor received_tensor(PendingReceive&& receive);

}  // namespace plumbline::engine
