// Writes the report's text files, atomically or by appending, and makes text fit for XML.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace plumbline {

/// Writes to a temporary name in the same folder, then renames it. Throws InputError naming the file.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// Appends and flushes. Throws InputError naming the file.
void append_text_file(const std::filesystem::path& path, std::string_view text);

/// `text` with everything replaced that XML 1.0 cannot hold even escaped: control characters become \xNN, bytes that
/// are not UTF-8 become U+FFFD. Markup is unchanged.
std::string xml_characters(std::string_view text);

/// xml_characters() with markup escaped: fit for text and for an attribute in double quotes.
std::string xml_escaped(std::string_view text);

}  // namespace plumbline
