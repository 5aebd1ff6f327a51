// Reads and writes whole text files, compressed with gzip or plain.
#pragma once

#include <chrono>
#include <string>

namespace plumbline {

/// Returns the text of a file, decompressed if its content (not its name) is gzip. A pipe will do as well, as in
/// `plumbline partition <(program)`; its writer may be silent for `silence` at most. Throws InputError naming the file
/// if it cannot be read, is truncated or is damaged, is a pipe of more than 1 GiB, or unpacks to more than 200 times
/// its bytes plus 64 MiB.
std::string read_text(const std::string& path, std::chrono::seconds silence = std::chrono::minutes(10));

/// Writes `text`, compressed if the name ends in ".gz". A new or regular file is replaced atomically, by renaming a
/// temporary file in the same folder; a pipe, a device or a symbolic link is written directly. Two threads of a process
/// must not write the same path at once. Throws InputError naming the file if writing fails.
void write_text(const std::string& path, const std::string& text);

}  // namespace plumbline
