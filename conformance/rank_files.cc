#include "conformance/rank_files.h"

#include "reference/result_key.h"
#include "runtime/error.h"

namespace plumbline {

void merge_results(TensorMap& all, const TensorMap& part) {
  for (const auto& [key, tensor] : part) {
    const auto [it, inserted] = all.emplace(key, tensor);
    if (!inserted && it->second != tensor)
      throw Error("ranks disagree on " + key + " (copies of one tensor must be equal)");
  }
}

TensorMap merge_rank_files(const std::vector<std::filesystem::path>& files) {
  TensorMap merged;
  for (const std::filesystem::path& file : files) {
    if (!std::filesystem::exists(file)) throw Error("no results in " + file.string());
    const TensorMap part = read_tensor_file(file);  // its errors name the file
    try {
      for (const auto& [key, tensor] : part) parse_result_key(key);
      merge_results(merged, part);
    } catch (const Error& error) {
      throw Error(file.string() + ": " + error.what());
    }
  }
  return merged;
}

}  // namespace plumbline
