#include "conformance/cli/partition/partition_source.h"

#include "runtime/error.h"

namespace plumbline::cli {

partition::JointGraphFile load_joint_graphs(const PartitionSource& source, const ProgramReader& read_program) {
  if (source.path.ends_with(".pt2")) return read_program(source);
  if (source.stage >= 0 || source.decompose || !source.split.points.empty() || source.split.stages > 0)
    throw InputError("partition: " + source.path +
                     " is a joint graph already; --stage, --split, --stages and --decompose are for a program, M.pt2");
  return partition::read_joint_graph_file(source.path);
}

}  // namespace plumbline::cli
