// Mutants that sit between two ranks: messages lost, doubled, misdirected, stale or changed.
#include <ATen/ops/flip.h>

#include <algorithm>
#include <limits>
#include <map>

#include "conformance/mutants/wire_mutant.h"

namespace plumbline::conformance {
namespace {

void exchange(Message& message, int microbatches) {
  if (microbatches > 1 && message.microbatch < 2)
    message.move_to(message.channel, 1 - message.microbatch, microbatches);
}

}  // namespace

std::vector<Mutant> mutants_on_the_wire() {
  const std::vector<Need> trains = {need::training}, two_microbatches = {need::several_microbatches};
  return {
      on_the_wire(
          "swap-microbatches", "The outputs of micro-batches 0 and 1 are swapped on the way from the first rank.",
          [](const FaultSite& site) {
            return TransportHooks{.send = [site](Message& message) {
              if (message.load == Load::Value && site.rank == 0) exchange(message, site.microbatches());
            }};
          },
          two_microbatches),
      on_the_wire(
          "swap-gradients", "The gradients of micro-batches 0 and 1 are swapped on the way from the last rank.",
          [](const FaultSite& site) {
            return TransportHooks{.send = [site](Message& message) {
              if (message.load == Load::Gradient && site.is_last_rank()) exchange(message, site.microbatches());
            }};
          },
          two_microbatches),
      hanging(on_the_wire("swap-channels", "The first two boundary values travel under each other's tag.",
                          [](const FaultSite& site) {
                            return TransportHooks{.send = [site](Message& message) {
                              if (message.load == Load::Value && message.channel < 2)
                                message.move_to(1 - message.channel, message.microbatch, site.microbatches());
                            }};
                          })),
      hanging(on_the_wire("drop-value", "The first rank never sends the outputs of the last micro-batch.",
                          [](const FaultSite& site) {
                            return TransportHooks{.send = [site](Message& message) {
                              if (message.load == Load::Value && site.rank == 0 &&
                                  message.microbatch == site.microbatches() - 1)
                                message.times = 0;
                            }};
                          })),
      hanging(on_the_wire(
          "drop-gradient", "The last rank never sends the gradients of micro-batch 0.",
          [](const FaultSite& site) {
            return TransportHooks{.send = [site](Message& message) {
              if (message.load == Load::Gradient && site.is_last_rank() && message.microbatch == 0) message.times = 0;
            }};
          },
          trains)),
      hanging(on_the_wire("wrong-rank",
                          "The first rank sends the outputs of micro-batch 0 to the rank after the receiver.",
                          [](const FaultSite& site) {
                            return TransportHooks{.send = [site](Message& message) {
                              if (message.load == Load::Value && site.rank == 0 && message.microbatch == 0)
                                message.peer = (message.peer + 1) % site.ranks();
                            }};
                          },
                          {need::three_ranks})),
      hanging(on_the_wire(
          "duplicate-value",
          "The first rank sends the outputs of the last micro-batch twice: the next step receives the second.",
          [](const FaultSite& site) {
            return TransportHooks{.send = [site](Message& message) {
              if (message.load == Load::Value && site.rank == 0 && message.microbatch == site.microbatches() - 1)
                message.times = 2;
            }};
          },
          {need::several_trainings})),
      hanging(
          on_the_wire("duplicate-gradient",
                      "The last rank sends the gradients of micro-batch 0 twice: the next step receives the second.",
                      [](const FaultSite& site) {
                        return TransportHooks{.send = [site](Message& message) {
                          if (message.load == Load::Gradient && site.is_last_rank() && message.microbatch == 0)
                            message.times = 2;
                        }};
                      },
                      {need::several_trainings})),
      on_the_wire("short-message", "The first rank sends every output without its last byte.",
                  [](const FaultSite& site) {
                    return TransportHooks{.send = [site](Message& message) {
                      if (message.load == Load::Value && site.rank == 0 && !message.body.empty())
                        message.body.pop_back();
                    }};
                  }),
      on_the_wire(
          "unfilled-tail", "The last quarter of a value has not arrived when the rank continues: it reads zeros.",
          arrived(Load::Value,
                  [](const Message&, at::Tensor& numbers) {
                    numbers.narrow(0, numbers.numel() * 3 / 4, numbers.numel() - numbers.numel() * 3 / 4).zero_();
                  })),
      on_the_wire("stale-value", "A rank continues with the value that was in its receive buffer before.",
                  stale(Load::Value)),
      on_the_wire("stale-gradient", "A rank continues with the gradient that was in its receive buffer before.",
                  stale(Load::Gradient), trains),
      on_the_wire(
          "value-in-bf16", "Values are rounded to bf16 on the wire.",
          arrived(Load::Value, [](const Message&, at::Tensor& numbers) { numbers.copy_(numbers.to(at::kBFloat16)); }),
          {need::float32}),
      on_the_wire("gradient-in-bf16", "Gradients are rounded to bf16 on the wire.",
                  arrived(Load::Gradient,
                          [](const Message&, at::Tensor& numbers) { numbers.copy_(numbers.to(at::kBFloat16)); }),
                  {need::training, need::float32}),
      on_the_wire("zero-gradient", "The gradients of micro-batch 0 arrive as zeros.",
                  arrived(Load::Gradient,
                          [](const Message& message, at::Tensor& numbers) {
                            if (message.microbatch == 0) numbers.zero_();
                          }),
                  trains),
      on_the_wire("negative-gradient", "Gradients arrive with the opposite sign.",
                  arrived(Load::Gradient, [](const Message&, at::Tensor& numbers) { numbers.neg_(); }), trains),
      on_the_wire("reversed-value", "The elements of a value arrive in reverse order.",
                  arrived(Load::Value, [](const Message&, at::Tensor& numbers) { numbers.copy_(numbers.flip(0)); })),
      on_the_wire("nan-in-value", "The first element of the last micro-batch's values arrives as NaN.",
                  [](const FaultSite& site) {
                    return arrived(Load::Value,
                                   [last = site.microbatches() - 1](const Message& message, at::Tensor& numbers) {
                                     if (message.microbatch == last)
                                       numbers[0].fill_(std::numeric_limits<double>::quiet_NaN());
                                   })(site);
                  }),
      on_the_wire(
          "last-bit-of-gradient", "The last bit of one element of micro-batch 0's gradients is flipped.",
          [](const FaultSite& site) {
            return TransportHooks{.arrived = [site](const Message& message, std::span<std::byte> body) {
              if (message.load == Load::Gradient && message.microbatch == 0 && site.rank == 0)
                body.front() ^= std::byte{1};
            }};
          },
          trains),
  };
}

std::vector<Mutant> mutants_in_shared_sums() {
  const std::vector<Need> shared = {need::shared_parameters};
  return {
      on_the_wire("copy-lost", "A copy of a shared parameter reports to earlier ones that it has no gradient.",
                  flags_cleared([](const Message& message, int rank) { return message.peer < rank; }), shared),
      on_the_wire("copy-doubled", "The gradient of a shared parameter's copy is added twice.",
                  later_copy_changed([](at::Tensor& grad) { grad.mul_(2); }), shared),
      on_the_wire("copy-in-bf16",
                  "Gradients of a shared parameter's copies are rounded to bf16 before they are summed.",
                  later_copy_changed([](at::Tensor& grad) { grad.copy_(grad.to(at::kBFloat16)); }),
                  {need::shared_parameters, need::float32}),
      on_the_wire("copies-averaged", "A copy of a shared parameter gets the sum divided by two.",
                  copies_change([](const at::Tensor& own, at::Tensor& other, bool is_later) {
                    if (!is_later) other.sub_(own).div_(2);
                  }),
                  shared),
      on_the_wire("copy-keeps-its-own", "A copy of a shared parameter keeps its gradient instead of the sum.",
                  copies_change([](const at::Tensor&, at::Tensor& other, bool is_later) {
                    if (!is_later) other.zero_();
                  }),
                  shared),
      on_the_wire("sum-says-none", "The first copy of a shared parameter tells the others that it has no gradient.",
                  flags_cleared([](const Message& message, int rank) { return message.peer > rank; }), shared),
  };
}

}  // namespace plumbline::conformance
