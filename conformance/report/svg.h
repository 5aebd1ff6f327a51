// Pictures as XML trees: what matrix_svg.h and timeline_svg.h share.
#pragma once

#include <initializer_list>
#include <pugixml.hpp>
#include <string>
#include <utility>

namespace plumbline::conformance {

using SvgAttributes = std::initializer_list<std::pair<const char*, std::string>>;

/// A number in the form that printf's `format` gives it; 0 for what is not finite.
std::string svg_number(double value, const char* format);

/// Appends an element to `parent`. What XML cannot hold is made harmless (xml_characters).
pugi::xml_node add_element(pugi::xml_node parent, const char* name, SvgAttributes attributes,
                           const std::string& text = {});

/// The <svg> of an empty document: a white frame, named `title`.
pugi::xml_node begin_svg(pugi::xml_document& document, const std::string& title);

/// The file's text, for a picture of so many pixels that began with begin_svg.
std::string finished_svg(const pugi::xml_document& document, int width, int height);

}  // namespace plumbline::conformance
