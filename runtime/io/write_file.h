// Writes files atomically or by appending, also into folders into which another program writes.
#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/error.h"

namespace plumbline {

/// A file cannot be written: the disk is full or the folder read-only, for one. No fault of the file's contents.
class WriteError : public InputError {
 public:
  using InputError::InputError;
};

/// Writes a temporary file in the same folder, then renames it to `path`: a reader finds the old bytes or all of the
/// new ones. A link at `path` is replaced, not followed. Several threads of a process may write into the same folder.
/// Throws WriteError that names the file and the reason, also for a device at `path`.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Creates or extends the regular file at `path`. Throws WriteError as write_file(), also for a link or a FIFO there.
void append_file(const std::filesystem::path& path, std::string_view bytes);

/// Creates the missing folders of `folder / below`, of which `folder` exists. Throws WriteError for a `below` that
/// leads_out() (regular_file.h), and for a part of it that is something else than a folder, such as a link: another
/// program may have put it there to lead the writer elsewhere.
void create_folders(const std::filesystem::path& folder, const std::filesystem::path& below);

}  // namespace plumbline
