// For tests: handmade recordings of two stages with two modules each and three micro-batches.
#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"

namespace plumbline::sample {

inline constexpr int kMicrobatches = 3;
inline const std::vector<std::string> kModules = {"embed", "layers.0", "layers.1", "head"};
inline int stage_of(size_t module) { return module < 2 ? 0 : 1; }

inline HostTensor f32(const std::vector<float>& values) {
  HostTensor tensor{"F32", {static_cast<int64_t>(values.size())}, std::vector<std::byte>(values.size() * 4)};
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

inline float& element(HostTensor& tensor, size_t index) { return reinterpret_cast<float*>(tensor.data.data())[index]; }

/// The recording of one rank.
struct Rank {
  TensorMap tensors;
  std::vector<std::string> order, parameters;
};

/// The contents of a recording's folder: a rank for each stage, or one with all stages.
struct Made {
  std::vector<Rank> ranks;
  std::map<std::string, nlohmann::json> index;  ///< replaces entries of the indexes

  /// The tensors of the rank that has `key`, which names the stage of the pipelined run.
  TensorMap& holder(const std::string& key) {
    for (Rank& rank : ranks)
      if (rank.tensors.contains(key)) return rank.tensors;
    throw std::logic_error("no " + key);
  }
  HostTensor& at(const std::string& key) { return holder(key)[key]; }
};

/// Every module adds 1 to two numbers; each value encodes its module and micro-batch.
inline Made made(bool pipelined) {
  Made all;
  all.ranks.resize(pipelined ? 2 : 1);
  for (size_t m = 0; m < kModules.size(); ++m) {
    const std::string &name = kModules[m], stage = pipelined ? std::to_string(stage_of(m)) : "-";
    Rank& rank = all.ranks[pipelined ? static_cast<size_t>(stage_of(m)) : 0];
    const auto put = [&](const std::string& kind, int microbatch, const std::string& what, float value) {
      const std::string number = microbatch < 0 ? "-" : std::to_string(microbatch);
      rank.tensors["0/" + kind + "/" + stage + "/" + number + "/" + name + what] = f32({value, value + 0.5f});
    };
    for (const char* what : {":in", ".weight", ":out"}) rank.order.push_back(name + what);
    rank.parameters.push_back(name + ".weight");
    const auto v = static_cast<float>(m);
    put("forward", 0, ".weight", v + 40);
    put("grad", -1, ".weight", 3 * v + 63);  // of 20 + v, 21 + v, 22 + v
    put("buffer", -1, ".count", v);
    for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
      const float base = 10 * v + static_cast<float>(microbatch);
      put("forward", microbatch, ":in", base);
      put("forward", microbatch, ":out", base + 10);
      put("backward", microbatch, ":out", -base);
      put("backward", microbatch, ".weight", v + 20 + static_cast<float>(microbatch));
      put("backward", microbatch, ":in", -base - 1);
    }
  }
  for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch)
    all.ranks.back().tensors["0/loss/-/" + std::to_string(microbatch) + "/loss"] = f32({0.25f});
  return all;
}

/// Writes the files as plumbline_recorder.py does: of a perturbed run if the folder's name is that of one.
inline std::filesystem::path write(const std::filesystem::path& folder, const Made& all) {
  std::filesystem::create_directories(folder);
  const bool is_perturbed = folder.filename().string().starts_with("perturbed-");
  for (size_t rank = 0; rank < all.ranks.size(); ++rank) {
    const std::string name = "rank" + std::to_string(rank);
    write_tensor_file(folder / (name + ".step0.safetensors"), all.ranks[rank].tensors);
    nlohmann::json index = {{"schema", "plumbline-recorder/1"},
                            {"rank", rank},
                            {"ranks", all.ranks.size()},
                            {"microbatches", kMicrobatches},
                            {"whole_batch", false},
                            {"loss_scale", 1.0},
                            {"perturb", is_perturbed ? nlohmann::json(1) : nlohmann::json()},
                            {"torch", "2.15.0"},
                            {"files", {name + ".step0.safetensors"}},
                            {"parameters", all.ranks[rank].parameters},
                            {"order", all.ranks[rank].order}};
    for (const auto& [key, value] : all.index) index[key] = value;
    write_file(folder / (name + ".json"), index.dump());
  }
  return folder;
}

}  // namespace plumbline::sample
