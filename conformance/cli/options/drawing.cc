#include "conformance/cli/options/drawing.h"

#include "conformance/protocol/process/process.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"

namespace plumbline::cli {

void write_drawing(const std::string& drawing, const std::filesystem::path& path) {
  std::filesystem::path source = path;
  if (path.extension() != ".dot" && path.extension() != ".gv" && path.extension() != ".svg")
    throw InputError("--dot: " + path.string() + " is not F.dot or F.svg");
  const bool picture = path.extension() == ".svg";
  if (picture) source += ".dot";
  try {
    write_file(source, drawing);
  } catch (const WriteError& error) {
    throw InputError(std::string("--dot: ") + error.what());
  }
  if (!picture) return;
  conformance::ProcessOptions graphviz;
  graphviz.argv = {"dot", "-Tsvg", source.string(), "-o", path.string()};
  graphviz.timeout = std::chrono::minutes(2);
  const conformance::ProcessResult drawn = conformance::run_process(graphviz);
  if (!drawn.succeeded())
    throw InputError("--dot: Graphviz's dot, which makes the picture, " +
                     (drawn.could_not_start.empty() ? conformance::describe(drawn) : "is not installed") +
                     "; the drawing is in " + source.string());
  std::filesystem::remove(source);
}

}  // namespace plumbline::cli
