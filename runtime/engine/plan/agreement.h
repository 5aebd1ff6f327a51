// Agreement: all ranks send their expectations to rank 0, rank 0 compares them, and every rank gets the result.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// The expectations of one rank: a list of texts, of any content.
using Beliefs = std::vector<std::string>;

/// The bytes of a list of texts, and the inverse.
std::string packed(const Beliefs& beliefs);
Beliefs unpacked(std::span<const std::byte> bytes);

/// Gathers the beliefs of all ranks and passes them, indexed by rank, to `contradiction`, which is called on rank 0
/// only. If `contradiction` returns a text that is not empty, every rank throws Error with this text. Every rank calls
/// this function; nothing happens with one rank. Also throws as Transport::wait() does.
void require_agreement(const Beliefs& mine, transport::Transport& transport, const transport::Deadline& deadline,
                       const std::function<std::string(std::span<const Beliefs> of_rank)>& contradiction);

}  // namespace plumbline::engine
