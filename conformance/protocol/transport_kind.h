// How the ranks of a run exchange tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plumbline::conformance {

enum class TransportKind {
  Threads,
  Mpi,
  Nccl,  ///< between processes under MPI
  Own,   ///< the transport of a backend other than the runtime of this project
};

/// "threads", "mpi", "nccl" or "own".
inline std::string transport_name(TransportKind kind) {
  switch (kind) {
    case TransportKind::Threads:
      return "threads";
    case TransportKind::Mpi:
      return "mpi";
    case TransportKind::Nccl:
      return "nccl";
    case TransportKind::Own:
      break;
  }
  return "own";
}

/// The inverse of transport_name(); nullopt for any other text.
inline std::optional<TransportKind> transport_kind(std::string_view name) {
  for (const TransportKind kind : {TransportKind::Threads, TransportKind::Mpi, TransportKind::Nccl, TransportKind::Own})
    if (transport_name(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace plumbline::conformance
