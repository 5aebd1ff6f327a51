// Writes the file that the option --dot F.dot|F.svg names.
#pragma once

#include <filesystem>
#include <string>

namespace plumbline::cli {

/// Writes `drawing`, a text in Graphviz's language, to a .dot or .gv file, or the picture that Graphviz makes of it to
/// an .svg file. Throws InputError for any other extension, if the file cannot be written, and if Graphviz is not
/// installed, fails or takes more than two minutes; PATH.dot, which otherwise is deleted, then holds the drawing.
void write_drawing(const std::string& drawing, const std::filesystem::path& path);

}  // namespace plumbline::cli
