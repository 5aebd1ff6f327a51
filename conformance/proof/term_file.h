// The terms of a run as JSON, for programs that hold them against laws of their own (docs/proof.md, "A second
// opinion").
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/proof/executions/observed_rank.h"
#include "conformance/protocol/run_id.h"

namespace plumbline::proof {

/// Writes the terms below the results of both runs, each once:
///
///     {"format": "plumbline-terms/1", "case": ..., "schedule": ..., "ranks": ..., "microbatches": ...,
///      "heads": [[operator, attributes], ...],   an operator, or a kind of leaf
///      "terms": [[head, operand, ...], ...],     numbers of a head and of terms further ahead in the list
///      "expected": {result: [term]},             of the unsplit model
///      "found": {result: [term, ...]}}           of the engine; several if several ranks delivered the result
///
/// Throws InputError if the file cannot be written.
void write_terms(const std::filesystem::path& path, const conformance::RunId& run, int microbatches, const Terms& terms,
                 const ResultTerms& expected, const std::vector<RankTerms>& found);

}  // namespace plumbline::proof
