// A tensor on its way from one rank to another: its elements, and the strides that they are laid out with.
//
// Either every tensor crosses contiguous, or it keeps the order of its dimensions in memory. Kernels add up in an order
// that depends on strides, so only the second gives the bits of a model that was never cut; it costs a small message
// more.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// `tensor` as it crosses: detached and contiguous; or, where strides are kept, dense in the order of its own strides
/// (dimensions of stride 0 stay so). Copies only what is not laid out like that already.
at::Tensor in_transfer_layout(const at::Tensor& tensor, bool keep_strides);

/// The messages of a tensor: its memory, in the order in which it lies there, and its strides.
struct OutgoingTensor {
  at::Tensor body;
  at::Tensor strides;  ///< i64[dimensions]; undefined where strides are not kept
};
/// `tensor` is in transfer layout.
OutgoingTensor make_outgoing(const at::Tensor& tensor, bool keep_strides);

/// The receives of a tensor, posted and perhaps not complete.
struct PendingReceive {
  at::Tensor body, strides;
  transport::Request body_request, strides_request;
};

/// Posts the receives of a tensor of this dtype and these sizes; `strides_tag` is only used where strides are kept.
PendingReceive post_receive(transport::Transport& transport, at::ScalarType dtype, at::IntArrayRef sizes, int peer,
                            int64_t tag, int64_t strides_tag, bool keep_strides);

/// The tensor, once both requests are complete.
at::Tensor received_tensor(PendingReceive&& receive);

}  // namespace plumbline::engine
