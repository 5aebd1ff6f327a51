#include "conformance/run/export_job.h"

#include <algorithm>

#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/export/export_case.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/judge.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"

namespace plumbline::conformance {

std::string export_for_job(JobCase& item, const Job& job, int microbatches, const BackendDescription& backend,
                           const std::filesystem::path& out) {
  std::string note;
  reference::Case c = with_microbatches(find_case(item.id), microbatches, note);
  const schedule::Schedule schedule = case_schedule(c, ChosenSchedule{item.schedule, item.csv}, job.ranks);
  if (demote(c, backend, note) && case_traits(c, schedule.stages, job.seed).draws_random_numbers)
    return "with random layers it can only be held to the same bits, but it is " + note;
  if (c.replicas > 1 && std::ranges::find(backend.features, kReplicasFeature) == backend.features.end())
    return "it has " + std::to_string(c.replicas) +
           " data-parallel replicas, and the backend does not name the feature '" + kReplicasFeature + "'";
  if (schedule::has_offload(schedule) && std::ranges::find(backend.features, kOffloadFeature) == backend.features.end())
    return std::string("its schedule has OFFLOAD and RELOAD, and the backend does not name the feature '") +
           kOffloadFeature + "'";
  item.folder = exported_case(item).string();
  item.csv.clear();  // it is in the folder
  try {
    export_case(c, schedule, job.seed, out / item.folder);
  } catch (const WriteError&) {
    throw;  // no reason to call the case unsupported
  } catch (const InputError& error) {
    return std::string("it cannot be exported: ") + error.what();
  }
  return {};
}

}  // namespace plumbline::conformance
