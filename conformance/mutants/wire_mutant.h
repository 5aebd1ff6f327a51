// Mutants that change messages between ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/mutants/hooked_transport.h"
#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {

using Hooks = std::function<TransportHooks(const FaultSite& site)>;

/// A mutant that decorates the transport of each rank with `hooks`, which is called once a rank.
inline Mutant on_the_wire(std::string name, std::string what, Hooks hooks, std::vector<Need> needs = {}) {
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

inline Mutant hanging(Mutant mutant) {
  mutant.hangs = true;
  return mutant;
}

/// Changes arrived messages of kind `load`, as numbers of the case's dtype.
inline Hooks arrived(Load load, std::function<void(const Message&, at::Tensor& numbers)> change) {
  return [load, change = std::move(change)](const FaultSite& site) {
    return TransportHooks{.arrived = [site, load, change](const Message& message, std::span<std::byte> body) {
      at::Tensor numbers = as_numbers(body, site);
      if (message.load == load && numbers.defined()) change(message, numbers);
    }};
  };
}

/// Replaces each message of kind `load` by the previous one from the same rank with the same size.
inline Hooks stale(Load load) {
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

/// Clears the flag in each CopyFlag message that `chosen` selects; `rank` sends the message to Message::peer.
inline Hooks flags_cleared(bool (*chosen)(const Message& message, int rank)) {
  return [chosen](const FaultSite& site) {
    return TransportHooks{.send = [chosen, rank = site.rank](Message& message) {
      if (message.load == Load::CopyFlag && chosen(message, rank)) message.body.front() = std::byte{0};
    }};
  };
}

/// Calls `change` for each gradient of a copy that arrives on a rank. `own` is the gradient of the same parameter that
/// this rank sent, `other` the one that arrived; `is_later`: it came from a rank with a higher number.
inline Hooks copies_change(std::function<void(const at::Tensor& own, at::Tensor& other, bool is_later)> change) {
  return [change = std::move(change)](const FaultSite& site) {
    // Two ranks exchange their copies: the send and the receive have the same peer, tag and number.
    using Key = std::tuple<int, int64_t, int64_t>;  // peer, tag, number
    auto own = std::make_shared<std::map<Key, std::vector<std::byte>>>();
    return TransportHooks{.send =
                              [own](Message& message) {
                                if (message.load == Load::Copy)
                                  (*own)[{message.peer, message.tag, message.number}] = message.body;
                              },
                          .arrived =
                              [own, change, site](const Message& message, std::span<std::byte> body) {
                                const auto sent = own->find({message.peer, message.tag, message.number});
                                if (message.load != Load::Copy || sent == own->end()) return;
                                at::Tensor other = as_numbers(body, site), mine = as_numbers(sent->second, site);
                                if (other.defined() && mine.defined()) change(mine, other, message.peer > site.rank);
                              }};
  };
}

/// The gradient of the later of two copies is changed before it is summed, on both ranks alike.
inline Hooks later_copy_changed(void (*change)(at::Tensor& grad)) {
  return copies_change([change](const at::Tensor& own, at::Tensor& other, bool is_later) {
    if (is_later) return change(other);
    at::Tensor changed = own.clone();
    change(changed);
    other.add_(changed).sub_(own);
  });
}

}  // namespace plumbline::conformance
