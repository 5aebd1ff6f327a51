// Mutants that sit between two ranks: messages lost, doubled, misdirected, stale or changed.
#include <ATen/ops/flip.h>

#include <algorithm>
#include <limits>
#include <map>

#include "conformance/mutants/hooked_transport.h"
#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {
namespace {

using Hooks = std::function<TransportHooks(const FaultSite& site)>;

Mutant on_the_wire(std::string name, std::string what, Hooks hooks, std::vector<Need> needs = {}) {
  Mutant mutant{std::move(name), std::move(what), [hooks = std::move(hooks)](const FaultSite& site) {
                  Fault fault;
                  fault.transport = [site, made = hooks(site)](transport::Transport& inner) {
                    return with_hooks(inner, site, made);
                  };
                  return fault;
                }};
  mutant.needs = std::move(needs);
  mutant.least_ranks = 2;
  return mutant;
}

Mutant hanging(Mutant mutant) {
  mutant.hangs = true;
  return mutant;
}

/// Changes arrived messages of kind `load`, as numbers of the case's dtype.
Hooks arrived(Load load, std::function<void(const Message&, at::Tensor& numbers)> change) {
  return [load, change = std::move(change)](const FaultSite& site) {
    return TransportHooks{.arrived = [site, load, change](const Message& message, std::span<std::byte> body) {
      at::Tensor numbers = as_numbers(body, site);
      if (message.load == load && numbers.defined()) change(message, numbers);
    }};
  };
}

/// Replaces each message of kind `load` by the previous one from the same rank with the same size.
Hooks stale(Load load) {
  return [load](const FaultSite&) {
    using Key = std::pair<int, size_t>;
    return TransportHooks{.arrived = [load, last = std::map<Key, std::vector<std::byte>>()](
                                         const Message& message, std::span<std::byte> body) mutable {
      if (message.load != load) return;
      std::vector<std::byte>& kept = last[{message.peer, body.size()}];
      if (!kept.empty()) std::copy(kept.begin(), kept.end(), body.begin());
      kept = message.body;
    }};
  };
}

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
      on_the_wire(
          "copy-lost", "A copy of a shared parameter reports that it has no gradient.",
          [](const FaultSite&) {
            return TransportHooks{.send = [](Message& message) {
              if (message.load == Load::CopyFlag) message.body.front() = std::byte{0};
              if (message.load == Load::Copy) message.times = 0;
            }};
          },
          shared),
      on_the_wire("copy-doubled", "The gradient of a shared parameter's copy is added twice.",
                  arrived(Load::Copy, [](const Message&, at::Tensor& numbers) { numbers.mul_(2); }), shared),
      on_the_wire(
          "copy-in-bf16", "Gradients of a shared parameter's copies are rounded to bf16 before they are summed.",
          arrived(Load::Copy, [](const Message&, at::Tensor& numbers) { numbers.copy_(numbers.to(at::kBFloat16)); }),
          {need::shared_parameters, need::float32}),
      on_the_wire("copies-averaged", "A copy of a shared parameter gets the sum divided by two.",
                  arrived(Load::Sum, [](const Message&, at::Tensor& numbers) { numbers.div_(2); }), shared),
      on_the_wire(
          "copy-keeps-its-own", "A copy of a shared parameter keeps its gradient instead of the sum.",
          [](const FaultSite&) {
            auto own = std::make_shared<std::map<size_t, std::vector<std::byte>>>();
            return TransportHooks{.send =
                                      [own](Message& message) {
                                        if (message.load == Load::Copy) (*own)[message.body.size()] = message.body;
                                      },
                                  .arrived =
                                      [own](const Message& message, std::span<std::byte> body) {
                                        const auto it = own->find(body.size());
                                        if (message.load == Load::Sum && it != own->end())
                                          std::copy(it->second.begin(), it->second.end(), body.begin());
                                      }};
          },
          shared),
      on_the_wire(
          "sum-says-none", "The owner of a shared parameter tells its copies that there is no gradient.",
          [](const FaultSite&) {
            return TransportHooks{.send = [](Message& message) {
              if (message.load == Load::SumFlag) message.body.front() = std::byte{0};
              if (message.load == Load::Sum) message.times = 0;
            }};
          },
          shared),
  };
}

}  // namespace plumbline::conformance
