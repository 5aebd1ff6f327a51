#include "conformance/proof/prove_cases.h"

#include <map>
#include <ostream>

#include "conformance/backend/built_models.h"
#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/expectation.h"
#include "conformance/mutants/mutants.h"
#include "conformance/proof/certificate.h"
#include "conformance/proof/scaled_case.h"
#include "conformance/proof/term_file.h"
#include "runtime/error.h"

namespace plumbline::proof {
namespace {

using conformance::PlannedRun;

constexpr auto kPatient = std::chrono::seconds(60);
/// For faults after which a rank waits for a message that never comes.
constexpr auto kShort = std::chrono::seconds(1);

std::string line_of(const CertifiedRun& certified) {
  const Proof& proof = certified.proof;
  const bool is_idle = proof.outcome == Outcome::Proven && !certified.mutant.empty() && proof.happened == 0;
  return line_of(proof, to_string(certified.run.id)) + (is_idle ? " (the mutant changed nothing here)" : "");
}

}  // namespace

CertifiedRun prove_run(const PlannedRun& run, const CasesOptions& options) {
  const reference::Case c = scaled(conformance::find_case(run.id.case_id), options.run.microbatches);
  const bool own_recompute = options.run.recompute == "never" && options.run.remat.mode.empty();
  CertifiedRun certified{.run = run,
                         .microbatches = c.microbatches,
                         .mutant = options.run.mutant,
                         .recompute = own_recompute ? c.recompute : options.run.recompute,
                         .remat = options.run.remat.mode,
                         .seed = options.run.seed};
  try {
    ProofOptions proof;
    proof.schedule = conformance::case_schedule(c, {run.id.schedule, run.csv}, run.id.ranks);
    if (schedule::has_offload(proof.schedule))
      throw InputError("its schedule has OFFLOAD and RELOAD; a proof follows values in memory, not in a store");
    proof.seed = options.run.seed;
    proof.claim = options.claim;
    proof.recompute.policy = engine::parse_recompute(certified.recompute);
    proof.remat = options.run.remat;
    proof.timeout = kPatient;
    certified.stages = proof.schedule.stages;
    if (!options.run.mutant.empty()) {
      const conformance::Mutant& mutant = conformance::find_mutant(options.run.mutant);
      const std::string lacks = conformance::why_not(
          mutant, {c, proof.schedule, conformance::case_traits(c, proof.schedule.stages, proof.seed)});
      if (!lacks.empty()) throw InputError("the mutant needs " + lacks);
      proof.fault = mutant.make;
      if (mutant.hangs) proof.timeout = kShort;
    }
    if (!options.terms.empty())
      proof.examine = [&](const Terms& terms, const ResultTerms& expected, const std::vector<RankTerms>& found) {
        write_terms(options.terms, run.id, c.microbatches, terms, expected, found);
      };
    certified.proof = prove(c, proof);
  } catch (const InputError& error) {
    certified.not_taken = error.what();
  }
  return certified;
}

int prove_cases(const CasesOptions& options, std::ostream& out) {
  const auto models = conformance::built_models(options.run.seed);
  conformance::RunOptions planned = options.run;
  planned.microbatches = 0;  // planning asks whether the case's rows suffice
  std::vector<CertifiedRun> all;
  std::map<std::string, int> counts, not_taken;  // by outcome, by reason
  const std::vector<PlannedRun> runs = conformance::make_plan(planned, *models).runs;
  if (!options.terms.empty() && runs.size() != 1)
    throw InputError("--terms takes the terms of one run, and these are " + std::to_string(runs.size()) +
                     "; name a case, a schedule and a number of ranks");
  for (const PlannedRun& run : runs) {
    CertifiedRun certified =
        run.unsupported.empty() ? prove_run(run, options) : CertifiedRun{.run = run, .not_taken = run.unsupported};
    if (certified.not_taken.empty()) {
      out << line_of(certified) << std::endl;
      ++counts[std::string(outcome_name(certified.proof.outcome))];
    } else {
      ++not_taken[certified.not_taken];
    }
    all.push_back(std::move(certified));
  }
  if (counts.empty())
    throw InputError("prove: none of these runs can be taken; the first, " + all.front().run.id.case_id + ": " +
                     all.front().not_taken);
  out << "\n";
  for (const char* outcome : {"proven", "refuted", "stopped"})
    if (counts[outcome] > 0) out << outcome << " " << counts[outcome] << "\n";
  for (const auto& [why, count] : not_taken) out << "not taken " << count << ": " << why << "\n";
  if (!options.certificate.empty()) {
    write_certificate(options.certificate, options.claim, all);
    out << "certificate: " << options.certificate.string() << "\n";
  }
  return counts["refuted"] + counts["stopped"] == 0 ? 0 : 1;
}

}  // namespace plumbline::proof
