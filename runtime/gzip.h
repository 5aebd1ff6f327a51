// Whole files of text, packed with gzip or not.
#pragma once

#include <string>

namespace plumbline {

/// The text of a file; what opens as gzip does is unpacked, whatever the file is called. Throws InputError naming the
/// file where it cannot be read, ends early or is damaged.
std::string read_text(const std::string& path);

/// Writes the file anew, whole or not at all (under another name in the same folder, which it is then given); packed
/// where its name ends in ".gz". Throws InputError naming the file.
void write_text(const std::string& path, const std::string& text);

}  // namespace plumbline
