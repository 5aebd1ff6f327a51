// Makes text valid in XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// Returns `text` without characters that XML 1.0 forbids even if escaped: a control character other than newline and
/// tab becomes the text \xNN; each byte that is not part of an allowed UTF-8 character becomes U+FFFD. Markup is
/// unchanged.
std::string xml_characters(std::string_view text);

/// Returns xml_characters() with &, <, > and " escaped: valid as XML text and in an attribute in double quotes.
std::string xml_escaped(std::string_view text);

}  // namespace plumbline
