// The engines whose steps `plumbline bench peers step` compares with plumbline's: what their side of the comparison is.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace plumbline::bench {

struct PeerEngine {
  const char* name;                    ///< of --engine, of steps_NAME.py, and before "_over_" in the names of figures
  const char* title;                   ///< in tables
  const char* package;                 ///< that its Python must have
  const char* peer;                    ///< the arguments of scripts/peer that set it up
  std::vector<std::string> schedules;  ///< those that it has, by our names
  const char* includes;                ///< what its side includes, for the note on fairness
};

/// PyTorch, then the others.
std::span<const PeerEngine> peer_engines();

/// Aborts for another name.
const PeerEngine& peer_engine(const std::string& name);

}  // namespace plumbline::bench
