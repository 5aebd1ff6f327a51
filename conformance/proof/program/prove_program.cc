#include "conformance/proof/program/prove_program.h"

#include <ostream>

#include "conformance/program/step.h"
#include "conformance/proof/program/program_model.h"
#include "runtime/error.h"

namespace plumbline::proof {

int prove_program(const program::ProgramOptions& options, Claim claim, std::ostream& out) {
  const program::ProgramStep step = program::make_step(options, options.ranks);
  const std::string name = options.program.string();
  ProofOptions how;
  how.schedule = conformance::make_schedule(step.schedule, step.ranks, step.batch.microbatches);
  if (const std::string why = why_not_provable(step, how.schedule); !why.empty())
    throw InputError("prove --program " + name + ": " + why);
  how.seed = options.seed;
  how.claim = claim;
  how.recompute = options.recompute;
  how.remat = options.remat;
  how.boundaries = false;  // the archive has no modules by which the detached stages are cut
  how.fault = [&](const conformance::FaultSite&) { return with_program_stages(step); };
  add_program(name, step);
  const Proof proof = prove(program_case(name, step), how);
  const bool proven = proof.outcome == Outcome::Proven;
  out << line_of(proof, name + " x " + step.schedule.name + " (" + std::to_string(step.prepared.pipe.num_stages()) +
                            " stages, " + std::to_string(step.ranks) + " ranks, " +
                            std::to_string(step.batch.microbatches) + " micro-batches)")
      << (proven ? ", loss " + to_string(step.prepared.loss) : "") << "\n";
  return proven ? 0 : 1;
}

}  // namespace plumbline::proof
