// The subcommands of `plumbline-bench`: each adds itself to the parser and runs when chosen.
#pragma once

#include "conformance/cli/entry.h"

namespace plumbline::bench {

void add_micro(CLI::App& app, cli::Command& chosen);
void add_throughput(CLI::App& app, cli::Command& chosen);
void add_peers(CLI::App& app, cli::Command& chosen);
void add_peers_cut(CLI::App& peers, cli::Command& chosen);  ///< a subcommand of peers
void add_instructions(CLI::App& app, cli::Command& chosen);

}  // namespace plumbline::bench
