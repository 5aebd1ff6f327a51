// Builds SVG pictures as XML trees. Shared by matrix_svg.h and timeline_svg.h.
#pragma once

#include <initializer_list>
#include <pugixml.hpp>
#include <string>
#include <utility>

#include "runtime/text/xml_text.h"

namespace plumbline::conformance {

using SvgAttributes = std::initializer_list<std::pair<const char*, std::string>>;

/// Colours that all pictures share: of text, of lesser text, of lines.
inline constexpr const char* ink = "#1f2328";
inline constexpr const char* faint = "#656d76";
inline constexpr const char* line_colour = "#d8dee4";

/// Formats a number with the printf format `format`, which takes one double. A value that is not finite becomes 0.
std::string svg_number(double value, const char* format = "%.4g");

/// Appends an element to `parent` and returns it. Characters that XML does not allow are replaced (xml_characters()).
pugi::xml_node add_element(pugi::xml_node parent, const char* name, SvgAttributes attributes,
                           const std::string& text = {});

/// Adds the <svg> element, a white frame with this <title>, to an empty document and returns it.
pugi::xml_node begin_svg(pugi::xml_document& document, const std::string& title);

/// Sets the size, in pixels, of the picture that begin_svg() began, and returns the text of the file.
std::string finished_svg(const pugi::xml_document& document, int width, int height);

}  // namespace plumbline::conformance
