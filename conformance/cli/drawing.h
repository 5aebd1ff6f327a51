// Writes the file of the option --dot F.dot|F.svg.
#pragma once

#include <filesystem>
#include <string>

namespace plumbline::cli {

/// Writes `drawing`, in Graphviz's language, to a .dot or .gv file, or Graphviz's picture of it to an .svg file. Throws
/// InputError for any other extension, if the file cannot be written, and if Graphviz fails or is not installed (the
/// drawing then stays beside it).
void write_drawing(const std::string& drawing, const std::filesystem::path& path);

}  // namespace plumbline::cli
