#include "runtime/split/io/transmit.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/split/io/pipe_json.h"
#include "runtime/split/io/stored_tensors.h"

namespace plumbline::split {
namespace {

constexpr std::string_view kMagic = "plumbline-stages/";
constexpr std::string_view kVersion = "1";

uint64_t checksum(std::string_view bytes) { return std::hash<std::string_view>{}(bytes); }

void append(std::string& bytes, uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append(std::string& bytes, std::string_view part) {
  append(bytes, uint64_t{part.size()});
  bytes += part;
}

std::string_view take(std::string_view& bytes, uint64_t size) {
  if (size > bytes.size())
    throw InputError("stages of a pipe: truncated: " + std::to_string(size) + " bytes announced, " +
                     std::to_string(bytes.size()) + " there");
  const std::string_view part = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return part;
}

uint64_t take_number(std::string_view& bytes) {
  uint64_t number = 0;
  std::memcpy(&number, take(bytes, sizeof number).data(), sizeof number);
  return number;
}

/// The bytes after the line with the format, which must be of this version.
std::string_view after_version(std::string_view bytes) {
  if (!bytes.starts_with(kMagic))
    throw InputError("stages of a pipe: these bytes are something else; expected what pack_stages() made");
  bytes.remove_prefix(kMagic.size());
  const size_t end = bytes.substr(0, 20).find('\n');
  if (end == std::string_view::npos) throw InputError("stages of a pipe: truncated within the first line");
  if (bytes.substr(0, end) != kVersion)
    throw InputError("stages of a pipe: format version " + std::string(bytes.substr(0, end)) + ", this program reads " +
                     std::string(kVersion) + "; run the same build on every rank");
  bytes.remove_prefix(end + 1);
  return bytes;
}

}  // namespace

std::string pack_stages(const Pipe& pipe, const std::vector<int>& stages, const std::string& run_id) {
  std::vector<const graph::Graph*> graphs;
  for (int s = 0; s < pipe.num_stages(); ++s)
    if (std::ranges::count(stages, s)) graphs.push_back(&pipe.stages[s].graph);
  PLUMBLINE_CHECK(graphs.size() == stages.size(), "a stage that is requested twice, or does not exist");
  TensorMap data;
  nlohmann::json json;
  json["pipe"] = to_json(pipe, [&](int stage) { return std::ranges::count(stages, stage) > 0; });
  json["tensors"] = store_tensors(graphs, data);
  std::string content;
  append(content, run_id);
  append(content, json_text(json));
  append(content, encode_tensors(data));
  std::string bytes = std::string(kMagic) + std::string(kVersion) + "\n";
  append(bytes, checksum(content));
  append(bytes, content);
  return bytes;
}

Pipe unpack_stages(std::string_view bytes, const std::string& run_id) {
  bytes = after_version(bytes);
  const uint64_t sum = take_number(bytes);
  std::string_view content = take(bytes, take_number(bytes));
  if (!bytes.empty())
    throw InputError("stages of a pipe: " + std::to_string(bytes.size()) + " bytes too many after their end");
  if (checksum(content) != sum) throw InputError("stages of a pipe: damaged on the way: the checksum does not fit");
  const std::string_view sent_by = take(content, take_number(content));
  if (sent_by != run_id)
    throw InputError("stages of a pipe: they carry run id " + std::string(sent_by) + ", this is run " + run_id +
                     "; stages are sent, not kept: use `plumbline split -o` for files");
  const std::string source = "stages of a pipe";
  const nlohmann::json json = parse_json(take(content, take_number(content)), source);
  const TensorMap data = decode_tensors(take(content, take_number(content)), source);
  const JsonPlace place(json, source);
  Pipe pipe = pipe_from_json(place["pipe"]);
  std::vector<graph::Graph*> graphs;
  const std::vector<JsonPlace> stages = place["pipe"]["stages"].items();
  for (int s = 0; s < pipe.num_stages(); ++s)
    if (!stages[s]["graph"].is_null()) graphs.push_back(&pipe.stages[s].graph);
  bind_stored_tensors(place["tensors"], data, graphs);
  return pipe;
}

}  // namespace plumbline::split
