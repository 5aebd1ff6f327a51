// plumbline-torch: what plumbline becomes for a subcommand that needs LibTorch. front.cc is what users call.
#include <unistd.h>

#include "conformance/cli/actions/execute.h"
#include "conformance/cli/commands.h"
#include "conformance/report/context.h"

int main(int argc, char** argv) {
  using namespace plumbline;
  const int code = cli::run_command_line(argc, argv,
                                         {.run_cases = cli::execute_run,
                                          .run_program = cli::execute_program_run,
                                          .prove = cli::execute_prove,
                                          .mutants = cli::execute_mutants,
                                          .split = cli::execute_split,
                                          .export_cases = cli::execute_export,
                                          .backend = cli::execute_backend,
                                          .check = cli::execute_check,
                                          .doctor = cli::execute_doctor,
                                          .read_program = cli::joint_graph_of_program,
                                          .version = conformance::plumbline_version});
#ifndef __SANITIZE_ADDRESS__  // its search for leaks is a handler of exit()
  // LibTorch's static objects take as long to destroy as a short subcommand takes; the system frees their memory
  // faster.
  std::fflush(nullptr);
  _exit(code);
#endif
  return code;
}
