// plumbline split: cuts a program from Python into stages, and prints, draws or saves them.
#include "conformance/cli/commands.h"
#include "conformance/cli/options/program_options.h"

namespace plumbline::cli {

void add_split(CLI::App& app, Command& chosen, const Actions& actions) {
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
  command->callback([=, execute = actions.split, &chosen] { chosen = [=] { return execute(*options); }; });
}

}  // namespace plumbline::cli
