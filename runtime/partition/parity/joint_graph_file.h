// Reads and writes files of joint graphs and of the partitions that PyTorch made of them ("plumbline-joint-graph/1").
// A file may be compressed with gzip; the writer compresses if the name ends in ".gz".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct JointGraphFile {
  std::string model, about;
  std::vector<std::string> torch;            ///< PyTorch versions in the file
  std::map<std::string, JointGraph> graphs;  ///< by an identifier, such as "g0"

  /// A graph as traced by one PyTorch version with one table of decompositions, and PyTorch's clean-up of the graph.
  struct Variant {
    std::string torch, decompositions, graph;  ///< "2.15.0", "aten", a key of `graphs`
    std::vector<int> params;                   ///< positions among the primals: parameters, for runs with static=params
    std::vector<std::string> dce_removed;      ///< names of the nodes removed as dead
    std::map<std::string, std::string> cse_merged;  ///< name of a duplicate -> name of the node that replaces it
    int nodes_left = 0;                             ///< number of nodes after clean-up
    /// Packet -> PyTorch's classes: "recomputable", "random", "view", "compute_intensive", "fusible".
    std::map<std::string, std::vector<std::string>> op_class;
  };
  std::map<std::string, Variant> variants;  ///< "2.15.0/aten"

  /// One half of a recorded partition, as names of nodes.
  struct Part {
    std::vector<std::string> in, ops;
    std::vector<std::optional<std::string>> out;  ///< nothing: None
    /// Name -> operator of nodes that the joint graph lacks, such as "run_and_save_rng_state" for a random call.
    std::map<std::string, std::string> added;
  };
  /// One minimum cut of PyTorch; compare CutRecord.
  struct Cut {
    std::vector<std::string> bans;                     ///< active bans: CutRules::names()
    std::vector<std::string> dont_ban, saved, banned;  ///< names of nodes
  };
  /// The knapsack of a budget; compare BudgetProblem.
  struct Knapsack {
    std::vector<std::string> nodes;       ///< candidates, in order
    std::vector<double> memory, runtime;  ///< by candidate; memory as a fraction of the range of the budget
    double capacity = 0, value = 0;
    std::vector<int> save, recompute;  ///< positions in `nodes`
  };
  /// One partition that PyTorch made.
  struct Run {
    std::string variant, mode, statics;  ///< from the key: "2.15.0/aten", "budget=0.25", "none" or "params"
    std::vector<int> static_inputs;      ///< positions among the primals
    std::optional<std::string> error;    ///< PyTorch's error; then saved, forward and backward are empty
    std::vector<std::string> saved, saved_symbols;
    int64_t bytes = 0, bytes_new_storage = 0;  ///< of the saved values: as tensors, and in storages besides the inputs'
    Part forward, backward;
    std::vector<std::string> recomputed;  ///< nodes in the ops of both halves, in the backward's order
    std::vector<Cut> cuts;                ///< in the order in which they were made
    std::optional<Knapsack> knapsack;
  };
  std::map<std::string, Run> runs;  ///< "2.15.0/aten/budget=0.25/static=none"
};

/// Reads a file. Only "format", "graphs" and at least one member of "variants" (with its "graph") are required, so that
/// users can write files by hand. Throws InputError with file, place and expected value if the file is malformed or has
/// an unknown member.
JointGraphFile read_joint_graph_file(const std::string& path);
/// Writes a file with one graph, one variant ("own/aten", with `params` as Variant::params) and no runs. Throws
/// InputError if the file cannot be written.
void write_joint_graph_file(const std::string& path, const std::string& model, const JointGraph& graph,
                            const std::vector<int>& params);

}  // namespace plumbline::partition
