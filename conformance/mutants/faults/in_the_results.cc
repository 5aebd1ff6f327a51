// Mutants in the results that a rank reports: under another name, left out, or changed.
#include <ATen/ops/equal.h>
#include <ATen/ops/mul.h>

#include <utility>

#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {
namespace {

using ResultsChange = std::function<void(const FaultSite& site, reference::Results& results)>;

Mutant report(std::string name, std::string what, ResultsChange change, std::vector<Need> needs = {}) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.results = [site, change](reference::Results& results) { change(site, results); };
            return fault;
          },
          std::move(needs)};
}

/// Exchanges the results of one kind between micro-batches 0 and 1.
void exchange(const FaultSite& site, reference::Results& results, reference::ResultKind kind) {
  for (auto& [text, tensor] : results) {
    reference::ResultKey key = reference::parse_result_key(text);
    if (key.kind != kind || key.microbatch != 0) continue;
    key.microbatch = 1;
    const auto other = results.find(to_string(key));
    if (other == results.end() || at::equal(tensor, other->second)) continue;
    std::swap(tensor, other->second);
    site.happens();
  }
}

bool erase_first(reference::Results& results, reference::ResultKind kind) {
  for (auto it = results.begin(); it != results.end(); ++it)
    if (reference::parse_result_key(it->first).kind == kind) {
      results.erase(it);
      return true;
    }
  return false;
}

}  // namespace

std::vector<Mutant> mutants_in_the_results() {
  return {
      report("losses-exchanged", "The losses of micro-batches 0 and 1 are reported under each other's number.",
             [](const FaultSite& site, reference::Results& results) {
               exchange(site, results, reference::ResultKind::Loss);
             },
             {need::several_microbatches}),
      report("outputs-told-exchanged", "The outputs of micro-batches 0 and 1 are reported under each other's number.",
             [](const FaultSite& site, reference::Results& results) {
               exchange(site, results, reference::ResultKind::Output);
             },
             {need::several_microbatches}),
      report("loss-not-told", "A loss is not reported.",
             [](const FaultSite& site, reference::Results& results) {
               if (erase_first(results, reference::ResultKind::Loss)) site.happens();
             }),
      report("gradient-not-told", "The first rank leaves out the gradient of a parameter.",
             [](const FaultSite& site, reference::Results& results) {
               if (site.rank == 0 && erase_first(results, reference::ResultKind::Grad)) site.happens();
             }),
      report("gradients-told-before-division", "Gradients are reported as they were before the division.",
             [](const FaultSite& site, reference::Results& results) {
               for (auto& [text, tensor] : results)
                 if (reference::parse_result_key(text).kind == reference::ResultKind::Grad) {
                   tensor = at::mul(tensor, site.microbatches());
                   site.happens();
                 }
             },
             {need::division, need::several_microbatches}),
  };
}

}  // namespace plumbline::conformance
