// --dot F.dot|F.svg of the subcommands.
#pragma once

#include <filesystem>
#include <string>

namespace plumbline::cli {

/// Writes a drawing in Graphviz's language, or the picture that Graphviz makes of it, by the end of the name. Throws
/// InputError for another end, where the file cannot be written, and where Graphviz is not installed (the drawing is
/// then kept beside).
void write_drawing(const std::string& drawing, const std::filesystem::path& path);

}  // namespace plumbline::cli
