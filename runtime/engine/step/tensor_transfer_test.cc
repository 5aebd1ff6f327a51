#include "runtime/engine/step/tensor_transfer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/testing/spawn.h"

namespace plumbline::testing {
namespace {

/// The tensor that arrives at rank 1 when rank 0 sends `tensor` as the engine does.
at::Tensor sent(const at::Tensor& tensor, bool keep_strides) {
  at::Tensor received;
  with_ranks(2, [&](transport::Transport& transport) {
    const transport::Deadline deadline = transport::Deadline::after(std::chrono::seconds(20));
    if (transport.rank() == 0) {
      const engine::OutgoingTensor outgoing =
          engine::make_outgoing(engine::in_transfer_layout(tensor, keep_strides), keep_strides);
      transport::Request body = transport.isend(outgoing.body.const_data_ptr(), outgoing.body.nbytes(), 1, 7), strides;
      if (outgoing.strides.defined())
        strides = transport.isend(outgoing.strides.const_data_ptr(), outgoing.strides.nbytes(), 1, 8);
      transport.wait(body, deadline, "body");
      transport.wait(strides, deadline, "strides");
      return;
    }
    engine::PendingReceive receive =
        engine::post_receive(transport, tensor.scalar_type(), tensor.sizes(), 0, 7, 8, keep_strides);
    transport.wait(receive.body_request, deadline, "body");
    transport.wait(receive.strides_request, deadline, "strides");
    received = engine::received_tensor(std::move(receive));
  });
  return received;
}

TEST(TensorTransfer, KeepsValuesAndWhereAskedStrides) {
  const at::Tensor x = at::arange(120, at::kFloat).reshape({2, 3, 4, 5});
  const std::vector<std::pair<std::string, at::Tensor>> layouts = {
      {"contiguous", x},
      {"transposed", x.transpose(1, 3)},
      {"permuted", x.permute({3, 0, 2, 1})},
      {"channels last", x.contiguous(at::MemoryFormat::ChannelsLast)},
      {"expanded", x.select(1, 0).contiguous().unsqueeze(1).expand({2, 6, 4, 5})},
      {"expanded twice", at::arange(4, at::kFloat).reshape({1, 4, 1}).expand({3, 4, 2})},
      {"expanded and transposed", x.select(0, 0).transpose(0, 2).unsqueeze(0).expand({2, 5, 4, 3})},
      {"a scalar, expanded", at::ones({}).expand({4, 2})},
      {"a scalar", at::ones({})},
      {"empty", x.narrow(0, 0, 0)},
      {"one row", x.narrow(0, 1, 1).transpose(0, 1)},
      {"truth values", x.transpose(0, 1) > 50},
      {"conjugated", at::view_as_complex(x.reshape({2, 3, 10, 2})).conj()},
      {"conjugated and transposed", at::view_as_complex(x.reshape({2, 3, 10, 2})).conj().transpose(0, 2)},
      {"conjugated and expanded", at::view_as_complex(x.reshape({60, 2})).conj().unsqueeze(1).expand({60, 3})},
      {"negated lazily", at::_neg_view(x)},
  };
  for (const auto& [name, tensor] : layouts) {
    EXPECT_TRUE(at::equal(sent(tensor, false), tensor)) << name;
    EXPECT_TRUE(sent(tensor, false).is_contiguous()) << name;
    const at::Tensor received = sent(tensor, true);
    EXPECT_TRUE(at::equal(received, tensor)) << name;
    if (tensor.numel() > 0) {
      EXPECT_EQ(received.strides(), tensor.strides()) << name;
    }
    EXPECT_EQ(received.strides(), engine::in_transfer_layout(tensor, true).strides())
        << name << ": a local crossing is the same";
    for (const bool keep_strides : {false, true}) {
      const at::Tensor copy = engine::copied_in_transfer_layout(tensor, keep_strides);
      EXPECT_TRUE(at::equal(copy, tensor)) << name;
      EXPECT_EQ(copy.strides(), engine::in_transfer_layout(tensor, keep_strides).strides()) << name;
      EXPECT_FALSE(copy.is_alias_of(tensor)) << name;
    }
  }
  // With gaps only the order of the dimensions can be kept.
  const at::Tensor sliced = x.transpose(0, 3).narrow(1, 0, 2);
  const at::Tensor received = sent(sliced, true);
  EXPECT_TRUE(at::equal(received, sliced));
  EXPECT_TRUE(received.is_non_overlapping_and_dense());
  EXPECT_LT(received.stride(0), received.stride(2));
  EXPECT_LT(received.stride(2), received.stride(3));
  EXPECT_EQ(received.strides(), engine::in_transfer_layout(sliced, true).strides());
}

}  // namespace
}  // namespace plumbline::testing
