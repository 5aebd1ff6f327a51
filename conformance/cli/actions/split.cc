// plumbline split: cuts the program, and prints, draws or saves its stages.
#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/actions/execute.h"
#include "conformance/cli/options/drawing.h"
#include "conformance/program/prepare.h"
#include "runtime/split/io/pipe_dot.h"
#include "runtime/split/io/print.h"
#include "runtime/split/io/program_files.h"
#include "runtime/text/counted.h"

namespace plumbline::cli {

int execute_split(const SplitCommand& command) {
  at::set_num_threads(1);
  const program::PreparedProgram prepared = program::prepare_program(command.program, command.split, command.loss, 1);
  const split::Pipe& pipe = prepared.pipe;
  if (command.print) std::cout << split::to_text(pipe);
  if (!command.out.empty()) split::write_pipe(pipe, command.out);
  if (!command.drawing.empty()) write_drawing(split::to_dot(pipe), command.drawing);
  if (command.print) return 0;
  std::cout << command.program.string() << ": " << counted(pipe.num_stages(), "stage")
            << (pipe.num_stages() == 1 ? "; cut it by --split or --stages\n" : "\n");
  for (int s = 0; s < pipe.num_stages(); ++s) {
    const split::Stage& stage = pipe.stages[s];
    std::cout << "stage " << s << ": " << stage.graph.nodes.size() << " calls, " << stage.graph.attributes.size()
              << " stored tensors";
    for (size_t i = 0; i < stage.inputs.size(); ++i) {
      const split::Boundary& boundary = pipe.boundaries[stage.inputs[i]];
      std::cout << (i ? ", " : ", takes ") << boundary.name << ' '
                << graph::describe(boundary.value.dtype, boundary.value.sizes) << " from stage " << boundary.producer;
    }
    std::cout << '\n';
  }
  if (!command.out.empty()) std::cout << "saved in " << command.out.string() << "/program.json\n";
  return 0;
}

}  // namespace plumbline::cli
