// Writes files atomically or by appending, also into folders into which another program writes.
#pragma once

#include <filesystem>
#include <string_view>

namespace plumbline {

/// Writes a temporary file in the same folder, then renames it to `path`: a reader finds the old bytes or all of the
/// new ones. Whatever is there as the last part of `path`, such as a link, is replaced, not followed. Several threads
/// of a process may write into the same folder. Throws InputError that names the file and the reason.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Creates or extends the regular file at `path`. Throws InputError as write_file(), also for a link or a FIFO there.
void append_file(const std::filesystem::path& path, std::string_view bytes);

/// Creates the missing folders of `folder / below`, of which `folder` exists. Throws InputError for a part of `below`
/// that is something else than a folder, such as a link: another program may have put it there to lead the writer
/// elsewhere.
void create_folders(const std::filesystem::path& folder, const std::filesystem::path& below);

}  // namespace plumbline
