// plumbline split: cuts a program from Python into stages, and prints, draws or saves them.
#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/commands.h"
#include "conformance/cli/drawing.h"
#include "conformance/cli/program_options.h"
#include "conformance/program/prepare.h"
#include "runtime/split/io/pipe_dot.h"
#include "runtime/split/io/print.h"
#include "runtime/split/io/program_files.h"

namespace plumbline::cli {
namespace {

struct SplitCommand {
  std::filesystem::path program, out, drawing;
  program::ProgramSplit split;
  std::string loss;
  bool print = false;
};

int split_program(const SplitCommand& command) {
  at::set_num_threads(1);
  const program::PreparedProgram prepared = program::prepare_program(command.program, command.split, command.loss, 1);
  const split::Pipe& pipe = prepared.pipe;
  if (command.print) std::cout << split::to_text(pipe);
  if (!command.out.empty()) split::write_pipe(pipe, command.out);
  if (!command.drawing.empty()) write_drawing(split::to_dot(pipe), command.drawing);
  if (command.print) return 0;
  std::cout << command.program.string() << ": " << pipe.num_stages()
            << (pipe.num_stages() == 1 ? " stage; cut it by --split or --stages\n" : " stages\n");
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

}  // namespace

void add_split(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SplitCommand>();
  CLI::App* command =
      app.add_subcommand("split",
                         "Cut a program that torch.export saved (.pt2) into pipeline stages.\n"
                         "Without --split and --stages it is cut at its pipe_split() markers. Example:\n"
                         "  plumbline split model.pt2 --split layers.2,layers.4 -o stages");
  command->add_option("program", options->program, "The archive")->required()->type_name("M.pt2");
  add_split_options(*command, options->split);
  command->add_option("--loss", options->loss, "As for plumbline run; decides which values have a gradient");
  command->add_option("-o,--out", options->out, "Save the stages in this folder: program.json and safetensors");
  command->add_flag("--print", options->print, "Print the pipe and every stage's calls");
  command
      ->add_option("--dot", options->drawing, "Draw the pipe: a Graphviz file, or a picture if Graphviz is installed")
      ->type_name("F.dot|F.svg");
  command->callback([=, &chosen] { chosen = [options] { return split_program(*options); }; });
}

}  // namespace plumbline::cli
