// plumbline prove: of cases, of the steps of unsplit models, and of programs.
#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/actions/execute.h"
#include "conformance/corpus/corpus.h"
#include "conformance/mutants/mutants.h"
#include "conformance/proof/program/prove_program.h"
#include "conformance/proof/prove_cases.h"
#include "conformance/proof/rows/step_cases.h"

namespace plumbline::cli {

int execute_prove(const ProveCommand& command) {
  at::set_num_threads(1);
  if (command.of_program) return proof::prove_program(command.program, command.cases.claim, std::cout);
  const conformance::RunOptions& run = command.cases.run;
  conformance::add_cases(run.corpus);
  if (command.whole_step)
    return proof::prove_steps({run.selection.case_glob, run.microbatches, run.seed, command.cases.certificate},
                              std::cout);
  proof::CasesOptions cases = command.cases;
  if (!run.mutant.empty()) cases.run.mutant_ranks = conformance::find_mutant(run.mutant).least_ranks;
  return proof::prove_cases(cases, std::cout);
}

}  // namespace plumbline::cli
