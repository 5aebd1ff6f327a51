#include "conformance/backend/job.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/report/write_text.h"
#include "runtime/error.h"

namespace plumbline {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobCase, id, schedule, csv)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobThroughput, schedule, model, forward_ms, backward_ms, rows,
                                                microbatches, steps, trace)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Job, ranks, seed, timeout_seconds, microbatches, mutant, recompute, remat,
                                   remat_policy, cases, throughput)

void write_job(const std::filesystem::path& path, const Job& job) {
  write_text_file(path, nlohmann::json(job).dump(1) + "\n");
}

Job read_job(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw InputError("job file " + path.string() + " cannot be read");
  try {
    return nlohmann::json::parse(in).get<Job>();
  } catch (const nlohmann::json::exception& error) {
    throw InputError("job file " + path.string() + ": " + error.what());
  }
}

std::filesystem::path result_path(const std::filesystem::path& out, const JobCase& c, int rank) {
  return out / std::filesystem::path(c.schedule).filename() / c.id / ("rank" + std::to_string(rank) + ".safetensors");
}

std::filesystem::path throughput_path(const std::filesystem::path& out, size_t index, int rank) {
  return out / "throughput" / std::to_string(index) / ("rank" + std::to_string(rank) + ".json");
}

}  // namespace plumbline
