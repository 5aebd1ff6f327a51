// How the ranks of a run exchange tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plumbline::conformance {

enum class TransportKind {
  Threads,
  Mpi,
  Own,  ///< the transport of a backend other than the runtime of this project
};

/// "threads", "mpi" or "own".
inline std::string transport_name(TransportKind kind) {
  return kind == TransportKind::Own ? "own" : kind == TransportKind::Mpi ? "mpi" : "threads";
}

/// The inverse of transport_name(); nullopt for any other text.
inline std::optional<TransportKind> transport_kind(std::string_view name) {
  for (const TransportKind kind : {TransportKind::Threads, TransportKind::Mpi, TransportKind::Own})
    if (transport_name(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace plumbline::conformance
