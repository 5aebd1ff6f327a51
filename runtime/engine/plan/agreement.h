// Agreement: all ranks send their expectations to rank 0, rank 0 compares them, and every rank learns the result.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// The expectations of one rank: a list of texts, of any content.
using Beliefs = std::vector<std::string>;

/// Gathers the beliefs of all ranks and passes them, by rank, to `contradiction` on rank 0. Throws Error with the text
/// that it returns, on every rank, unless the text is empty. Every rank calls it; with one rank it does nothing. Throws
/// as Transport::wait() does.
void require_agreement(const Beliefs& mine, transport::Transport& transport, const transport::Deadline& deadline,
                       const std::function<std::string(std::span<const Beliefs> of_rank)>& contradiction);

}  // namespace plumbline::engine
