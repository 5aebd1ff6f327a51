// The step of a program that the options of the command line describe.
#pragma once

#include "conformance/program/rank.h"

namespace plumbline::program {

/// Reads and cuts the program, makes its batch, and chooses the schedule. `ranks`: the number that mpirun started, or
/// else options.ranks; 0: as many as the schedule needs for the stages. Throws InputError for options, files and
/// programs that are invalid or contradict each other.
ProgramStep make_step(ProgramOptions options, int ranks);

}  // namespace plumbline::program
