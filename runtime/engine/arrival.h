// A tensor on its way from one rank to another: its bytes, and the strides that they are laid out with.
//
// Either every tensor crosses contiguous, or it keeps the order of its dimensions in memory. Kernels add up in an order
// that depends on strides, so only the second gives the bits of a model that was never cut; it costs a small message
// more.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// `tensor` as it crosses: detached, contiguous; or, where strides are kept, dense in the order of its own strides
/// (dimensions of stride 0 stay so). Copies only what is not laid out like that already.
at::Tensor as_it_crosses(const at::Tensor& tensor, bool keep_strides);

/// What is sent for a tensor that is as it crosses: the memory, in the order in which it lies there, and the strides.
struct Departure {
  at::Tensor body;
  at::Tensor strides;  ///< i64[dimensions]; undefined where strides are not kept
};
Departure depart(const at::Tensor& tensor, bool keep_strides);

/// A receive under way.
struct Arrival {
  at::Tensor body, strides;
  transport::Request body_request, strides_request;

  bool expected() const { return body.defined(); }
};

/// Posts the receives of a tensor of this dtype and these sizes; `strides_tag` is only used where strides are kept.
Arrival expect(transport::Transport& transport, at::ScalarType dtype, at::IntArrayRef sizes, int peer, int64_t tag,
               int64_t strides_tag, bool keep_strides);

/// The tensor, once both requests are complete.
at::Tensor arrived(Arrival&& arrival);

}  // namespace plumbline::engine
