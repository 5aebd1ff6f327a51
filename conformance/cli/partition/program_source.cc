#include "conformance/cli/partition/partition_source.h"

#include <ATen/Parallel.h>

#include "conformance/program/prepare.h"
#include "runtime/engine/stage/stage_trace.h"
#include "runtime/error.h"
#include "runtime/partition/trace/decompositions.h"

namespace plumbline::cli {
namespace {

void name_primals(partition::JointTrace& trace, const graph::Graph& graph) {
  size_t next = 0;
  for (partition::JointNode& node : trace.graph.nodes) {
    if (node.kind != partition::JointKind::Primal) continue;
    const partition::PrimalSource& source = trace.primals[next++];
    node.attribute = source.kind == partition::PrimalSource::Kind::Attribute ? graph.attributes[source.index].name
                                                                             : graph.inputs[source.index].name;
  }
}

}  // namespace

partition::JointGraphFile joint_graph_of_program(const PartitionSource& source) {
  at::set_num_threads(1);
  const program::PreparedProgram prepared = program::prepare_program(source.path, source.split, "", 1);
  const int stages = prepared.pipe.num_stages();
  if (source.stage < 0 && stages > 1)
    throw InputError("partition: " + source.path + " is cut into " + std::to_string(stages) +
                     " stages; choose one by --stage K, from 0");
  const int stage = std::max(source.stage, 0);
  if (stage >= stages)
    throw InputError("partition: --stage " + std::to_string(stage) + ": " + source.path + " has stages 0 to " +
                     std::to_string(stages - 1));
  const graph::Graph& graph = prepared.pipe.stages[stage].graph;
  partition::JointTrace trace = engine::trace_stage(graph, engine::gradients_that_come_back(prepared.pipe, stage));
  name_primals(trace, graph);
  partition::JointGraphFile file;
  file.model = std::filesystem::path(source.path).stem().string();
  if (stages > 1) file.model += ", stage " + std::to_string(stage);
  file.graphs["g0"] = source.decompose ? decompose(trace.graph) : std::move(trace.graph);
  partition::JointGraphFile::Variant& variant = file.variants[source.decompose ? "own/core" : "own/aten"];
  variant.torch = "own";
  variant.decompositions = source.decompose ? "core" : "aten";
  variant.graph = "g0";
  variant.params = trace.static_inputs;
  return file;
}

}  // namespace plumbline::cli
