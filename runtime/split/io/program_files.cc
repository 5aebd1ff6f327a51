#include "runtime/split/io/program_files.h"

#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/io/write_file.h"
#include "runtime/split/io/pipe_json.h"
#include "runtime/split/io/stored_tensors.h"

namespace plumbline::split {
namespace {

namespace fs = std::filesystem;

fs::path tensors_of(const fs::path& folder, size_t stage) {
  return folder / ("stage" + std::to_string(stage) + ".safetensors");
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw InputError("cannot replace " + path.string() + ": " + error.message());
}

}  // namespace

void write_pipe(const Pipe& pipe, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw InputError("cannot make the folder " + folder.string() + ": " + error.message());
  const fs::path program = folder / "program.json";
  remove_file(program);
  nlohmann::json json;
  json["pipe"] = to_json(pipe, [](int) { return true; });
  json["tensors"] = nlohmann::json::array();
  for (size_t s = 0; s < pipe.stages.size(); ++s) {
    TensorMap data;
    json["tensors"].push_back(store_tensors({&pipe.stages[s].graph}, data));
    write_tensor_file(tensors_of(folder, s), data);
  }
  // Removes the files of an earlier, longer pipe.
  for (size_t s = pipe.stages.size(); fs::exists(tensors_of(folder, s)); ++s) remove_file(tensors_of(folder, s));
  write_file(program, json_text(json) + "\n");
}

Pipe read_pipe(const fs::path& folder) {
  const fs::path program = folder / "program.json";
  const std::string source = program.string();
  const nlohmann::json json = parse_json(read_file(program), source);
  const JsonPlace place(json, source);
  place.expect_only({"pipe", "tensors"});
  Pipe pipe = pipe_from_json(place["pipe"]);
  const std::vector<JsonPlace> tensors = place["tensors"].items(pipe.stages.size());
  for (size_t s = 0; s < pipe.stages.size(); ++s) {
    if (place["pipe"]["stages"].items()[s]["graph"].is_null()) place["pipe"].fail("a graph for every stage");
    try {
      bind_stored_tensors(tensors[s], read_tensor_file(tensors_of(folder, s)), {&pipe.stages[s].graph});
    } catch (const InputError& error) {
      const std::string file = tensors_of(folder, s).string(), text = error.what();
      if (text.find(file) != std::string::npos) throw;
      throw InputError(text + " (" + file + ")");
    }
  }
  return pipe;
}

}  // namespace plumbline::split
