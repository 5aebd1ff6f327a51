// Executes the subcommands of actions.h, with LibTorch.
#pragma once

#include "conformance/cli/actions.h"

namespace plumbline::cli {

int execute_run(const RunCommand& command);
int execute_program_run(const program::ProgramOptions& options);
int execute_prove(const ProveCommand& command);
int execute_mutants(const MutantsCommand& command);
int execute_split(const SplitCommand& command);
int execute_export(const ExportCommand& command);
int execute_backend(const BackendCommand& command);
int execute_check(const CheckCommand& command);
int execute_doctor(const DoctorCommand& command);

}  // namespace plumbline::cli
