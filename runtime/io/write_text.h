// Writes the text files of a report, atomically or by appending, and escapes text for XML.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace plumbline {

/// Writes a temporary file in the same folder, then renames it to `path`. Two threads of a process must not write the
/// same path at once. Throws InputError naming the file if writing fails.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// Appends `text` and closes the file. Throws InputError naming the file if writing fails, and for anything but a
/// regular file, links included.
void append_text_file(const std::filesystem::path& path, std::string_view text);

/// Returns `text` without characters that XML 1.0 forbids even if escaped: a control character other than newline and
/// tab becomes the text \xNN; each byte that is not part of an allowed UTF-8 character becomes U+FFFD. Markup is
/// unchanged.
std::string xml_characters(std::string_view text);

/// Returns xml_characters() with &, <, > and " escaped: valid as XML text and in an attribute in double quotes.
std::string xml_escaped(std::string_view text);

}  // namespace plumbline
