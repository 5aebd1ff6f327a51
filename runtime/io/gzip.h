// Reads and writes whole text files, compressed with gzip or plain.
#pragma once

#include <string>

namespace plumbline {

/// The text of a file. The content decides whether it is decompressed, not the name. Throws InputError, naming the
/// file, when it cannot be read, is truncated or is damaged.
std::string read_text(const std::string& path);

/// Replaces the file atomically, by writing a temporary file in the same folder and renaming it; compressed when the
/// name ends in ".gz". Throws InputError naming the file.
void write_text(const std::string& path, const std::string& text);

}  // namespace plumbline
