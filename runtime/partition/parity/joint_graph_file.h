// Reads and writes files of joint graphs and of the answers of PyTorch's partitioners ("plumbline-joint-graph/1"); gzip
// if the name ends in .gz.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct JointGraphFile {
  std::string model, about;
  std::vector<std::string> torch;  ///< versions in the file
  std::map<std::string, JointGraph> graphs;

  struct Variant {
    std::string torch, decompositions, graph;  ///< `graph`: key of `graphs`
    std::vector<int> params;                   ///< static primals
    std::vector<std::string> dce_removed;
    std::map<std::string, std::string> cse_merged;  ///< duplicate -> kept
    int nodes_left = 0;
    /// Packet -> PyTorch's classes: "recomputable", "random", "view", "compute_intensive", "fusible".
    std::map<std::string, std::vector<std::string>> op_class;
  };
  std::map<std::string, Variant> variants;  ///< "2.15.0/aten"

  /// PyTorch's answer, by name, as it is in the file.
  struct Part {
    std::vector<std::string> in, ops;
    std::vector<std::optional<std::string>> out;
    /// Nodes that the joint graph lacks, and their operators: "run_and_save_rng_state" in place of a random call.
    std::map<std::string, std::string> added;
  };
  /// One minimum cut.
  struct Cut {
    std::vector<std::string> bans;  ///< active rules
    std::vector<std::string> dont_ban, saved, banned;
  };
  struct Knapsack {
    std::vector<std::string> nodes;       ///< candidates, in order
    std::vector<double> memory, runtime;  ///< by candidate; memory as a fraction of largest - least
    double capacity = 0, value = 0;
    std::vector<int> save, recompute;  ///< positions in `nodes`
  };
  struct Run {
    std::string variant, mode, statics;  ///< "2.15.0/aten", "budget=0.25", "params"
    std::vector<int> static_inputs;
    std::optional<std::string> error;
    std::vector<std::string> saved, saved_symbols;
    int64_t bytes = 0, bytes_new_storage = 0;
    Part forward, backward;
    std::vector<std::string> recomputed;  ///< in both halves, in the backward's order
    std::vector<Cut> cuts;
    std::optional<Knapsack> knapsack;
  };
  std::map<std::string, Run> runs;  ///< "2.15.0/aten/budget=0.25/static=none"
};

/// Requires only "graphs" and "variants" (each with its "graph"), so that users can write their own files. Throws
/// InputError naming file, place and what was expected, also for an unknown member.
JointGraphFile read_joint_graph_file(const std::string& path);
/// Writes a file with one graph in one variant ("own/aten") and no runs.
void write_joint_graph_file(const std::string& path, const std::string& model, const JointGraph& graph,
                            const std::vector<int>& params);

}  // namespace plumbline::partition
