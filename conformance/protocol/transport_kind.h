// How the ranks of a run exchange tensors.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plumbline::conformance {

enum class TransportKind {
  Threads,
  Mpi,
  Nccl,  ///< between processes under MPI
  Own,   ///< the transport of a backend other than the runtime of this project
};

/// In the order of the enumerators.
inline constexpr std::array<std::string_view, 4> kTransportWords = {"threads", "mpi", "nccl", "own"};
/// The values of --transport: all but "own".
inline constexpr auto kTransportOptions = std::span(kTransportWords).first<kTransportWords.size() - 1>();

inline std::string transport_name(TransportKind kind) {
  return std::string(kTransportWords.at(static_cast<size_t>(kind)));
}

/// The inverse of transport_name(); nullopt for any other text.
inline std::optional<TransportKind> transport_kind(std::string_view name) {
  const auto found = std::ranges::find(kTransportWords, name);
  if (found == kTransportWords.end()) return std::nullopt;
  return static_cast<TransportKind>(found - kTransportWords.begin());
}

}  // namespace plumbline::conformance
