#include "conformance/backend/shared_job.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string_view>
#include <vector>

#include "conformance/corpus/corpus.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/transport/collectives.h"

namespace plumbline::conformance {

Job share_job(transport::Transport& transport, const Job& job, bool add_corpus, const transport::Deadline& deadline) {
  nlohmann::json message;
  if (transport.rank() == 0) {
    message = {{"job", job_text(job)}, {"corpus", nlohmann::json::array()}};
    if (add_corpus && !job.corpus.empty())
      for (const CaseText& file : read_case_texts(job.corpus)) message["corpus"].push_back({file.name, file.text});
  }
  message = nlohmann::json::parse(transport::broadcast_text(transport, message.dump(), deadline));
  std::vector<CaseText> files;
  for (const nlohmann::json& file : message["corpus"]) files.push_back({file[0], file[1]});
  add_cases(files);
  return parse_job(message["job"], "the job from rank 0");
}

void write_of_all_ranks(transport::Transport& transport, const std::string& bytes,
                        const std::function<std::filesystem::path(int rank)>& path_of,
                        const transport::Deadline& deadline) {
  const std::vector<std::vector<std::byte>> all =
      transport::gather_bytes(transport, 0, std::as_bytes(std::span(bytes)), deadline);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const std::filesystem::path path = path_of(static_cast<int>(rank));
    std::filesystem::create_directories(path.parent_path());
    write_file(path, std::string_view(reinterpret_cast<const char*>(all[rank].data()), all[rank].size()));
  }
}

}  // namespace plumbline::conformance
