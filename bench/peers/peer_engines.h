// The engines whose steps `plumbline bench peers step` compares with plumbline's: how each is set up, and what its side
// of the comparison runs.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace plumbline::bench {

struct PeerEngine {
  const char* name;                    ///< value of --engine, NAME in steps_NAME.py, and prefix of the figures' names
  const char* title;                   ///< name of the engine in tables and notes
  const char* package;                 ///< name of the Python package that its side needs
  const char* setup_arguments;         ///< arguments of scripts/peer that set up its Python: "torch 2.15.0"
  std::vector<std::string> schedules;  ///< plumbline's names of the schedules that the engine has
  const char* fairness_note;           ///< the engine's part of fairness_note() (step_report.h): what its side includes
};

/// All engines, PyTorch first. Valid as long as the program runs.
std::span<const PeerEngine> peer_engines();

/// Returns the entry of peer_engines() with this name. Aborts for any other name.
const PeerEngine& peer_engine(const std::string& name);

}  // namespace plumbline::bench
