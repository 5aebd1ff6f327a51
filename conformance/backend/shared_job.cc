#include "conformance/backend/shared_job.h"

#include <nlohmann/json.hpp>

#include <string_view>
#include <vector>

#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/transport/collectives.h"

namespace plumbline::conformance {

Job share_job(transport::Transport& transport, const Job& job, const transport::Deadline& deadline) {
  const std::string text = transport.rank() == 0 ? job_text(job) : "";
  return parse_job(transport::broadcast_text(transport, text, deadline), "the job from rank 0");
}

void share_cases(transport::Transport& transport, std::span<const CaseText> files,
                 const transport::Deadline& deadline) {
  const bool sends = transport.rank() == 0;
  nlohmann::json sent = nlohmann::json::array();
  if (sends)
    for (const CaseText& file : files) sent.push_back({file.name, file.text});
  const nlohmann::json received = nlohmann::json::parse(transport::broadcast_text(transport, sent.dump(), deadline));
  if (sends) return;
  std::vector<CaseText> received_files;
  for (const nlohmann::json& file : received) received_files.push_back({file[0], file[1]});
  add_cases(received_files);
}

void gather_to_files(transport::Transport& transport, const std::string& bytes, const std::filesystem::path& out,
                     const std::function<std::filesystem::path(int rank)>& path_of,
                     const transport::Deadline& deadline) {
  const std::vector<std::vector<std::byte>> all =
      transport::gather_bytes(transport, 0, std::as_bytes(std::span(bytes)), deadline);
  if (transport.rank() == 0 && !out.empty()) std::filesystem::create_directories(out);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const std::filesystem::path path = path_of(static_cast<int>(rank));
    create_folders(out, path.parent_path().lexically_relative(out));
    write_file(path, std::string_view(reinterpret_cast<const char*>(all[rank].data()), all[rank].size()));
  }
}

}  // namespace plumbline::conformance
