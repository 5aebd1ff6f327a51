// Builds SVG pictures as XML trees; shared by matrix_svg.h and timeline_svg.h.
#pragma once

#include <initializer_list>
#include <pugixml.hpp>
#include <string>
#include <utility>

namespace plumbline::conformance {

using SvgAttributes = std::initializer_list<std::pair<const char*, std::string>>;

/// Formats a number with printf's `format`; 0 if it is not finite.
std::string svg_number(double value, const char* format);

/// Appends an element to `parent`. Characters that XML cannot hold are replaced (xml_characters).
pugi::xml_node add_element(pugi::xml_node parent, const char* name, SvgAttributes attributes,
                           const std::string& text = {});

/// Adds the <svg> to an empty document: a white frame with this <title>.
pugi::xml_node begin_svg(pugi::xml_document& document, const std::string& title);

/// The text of the file. Sets the size of the picture that begin_svg() began, in pixels.
std::string finished_svg(const pugi::xml_document& document, int width, int height);

}  // namespace plumbline::conformance
