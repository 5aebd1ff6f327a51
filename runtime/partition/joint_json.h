// The JSON form of joint graphs and of what partitioners answered for them ("plumbline-joint-graph/1"), read and
// written; gzip where the name ends in .gz.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/partition/joint_graph.h"
#include "runtime/partition/partition.h"

namespace plumbline {

struct JointGraphFile {
  std::string model, about;
  std::vector<std::string> torch;  ///< versions held
  std::map<std::string, JointGraph> graphs;

  struct Variant {
    std::string torch, decompositions, graph;  ///< `graph`: key of `graphs`
    std::vector<int> params;                   ///< static primals
    std::vector<std::string> dce_removed;
    std::map<std::string, std::string> cse_merged;  ///< duplicate -> kept
    int nodes_left = 0;
  };
  std::map<std::string, Variant> variants;  ///< "2.15.0/aten"

  /// What PyTorch answered; by name, as it stands in the file.
  struct Part {
    std::vector<std::string> in, ops;
    std::vector<std::optional<std::string>> out;
  };
  struct Run {
    std::string variant, mode, statics;  ///< "budget=0.25", "params"
    std::optional<std::string> error;
    std::vector<std::string> saved, saved_symbols;
    int64_t bytes = 0, bytes_new_storage = 0;
    Part forward, backward;
    std::vector<std::string> recomputed;
  };
  std::map<std::string, Run> runs;  ///< "2.15.0/aten/budget=0.25/static=none"
};

/// Throws InputError naming file, place and what is wrong.
JointGraphFile read_joint_graph_file(const std::string& path);
/// A file that holds one graph in one variant ("own/aten") and no runs.
void write_joint_graph_file(const std::string& path, const std::string& model, const JointGraph& graph,
                            const std::vector<int>& params);

nlohmann::json to_json(const JointGraph& graph);
JointGraph joint_graph_from_json(const nlohmann::json& json, const std::string& place);

/// One line of `plumbline partition --runs --json`: model, variant, run, saved, saved_sym, fw, bw.
nlohmann::json answer_json(const Partition& partition);

}  // namespace plumbline
