// Text files of the report: written whole or not at all, or appended to; and text made fit for XML.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace plumbline {

/// Writes to a temporary name in the same folder, then renames. InputError, naming the file, when it cannot be.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// Appends and flushes. InputError, naming the file, when it cannot be.
void append_text_file(const std::filesystem::path& path, std::string_view text);

/// `text` with everything that XML 1.0 cannot hold, not even escaped, made harmless: control characters are written
/// as \xNN, bytes that are not UTF-8 as U+FFFD. Markup is left as it is.
std::string xml_characters(std::string_view text);

/// xml_characters with markup escaped: fit for an attribute in double quotes and for text.
std::string xml_escaped(std::string_view text);

}  // namespace plumbline
