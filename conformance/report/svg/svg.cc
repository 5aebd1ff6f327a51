#include "conformance/report/svg/svg.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "runtime/text/xml_text.h"

namespace plumbline::conformance {

std::string svg_number(double value, const char* format) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), format, std::isfinite(value) ? value : 0.0);
  return text.data();
}

pugi::xml_node add_element(pugi::xml_node parent, const char* name, SvgAttributes attributes, const std::string& text) {
  pugi::xml_node element = parent.append_child(name);
  for (const auto& [attribute, value] : attributes)
    element.append_attribute(attribute).set_value(xml_characters(value).c_str());
  if (!text.empty()) element.append_child(pugi::node_pcdata).set_value(xml_characters(text).c_str());
  return element;
}

pugi::xml_node begin_svg(pugi::xml_document& document, const std::string& title) {
  const pugi::xml_node svg = add_element(
      document, "svg",
      {{"xmlns", "http://www.w3.org/2000/svg"},
       {"width", ""},
       {"height", ""},
       {"viewBox", ""},
       {"font-family", "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, 'DejaVu Sans', sans-serif"},
       {"role", "img"}});
  add_element(svg, "title", {}, title);
  add_element(svg, "rect",
              {{"x", "0.5"},
               {"y", "0.5"},
               {"width", ""},
               {"height", ""},
               {"rx", "8"},
               {"fill", "#ffffff"},
               {"stroke", "#d8dee4"}});
  return svg;
}

std::string finished_svg(const pugi::xml_document& document, int width, int height) {
  pugi::xml_node svg = document.child("svg"), frame = svg.child("rect");
  svg.attribute("width").set_value(width);
  svg.attribute("height").set_value(height);
  svg.attribute("viewBox").set_value(("0 0 " + std::to_string(width) + " " + std::to_string(height)).c_str());
  frame.attribute("width").set_value(width - 1);
  frame.attribute("height").set_value(height - 1);
  std::ostringstream text;
  document.save(text, "", pugi::format_default | pugi::format_no_declaration);
  return text.str();
}

}  // namespace plumbline::conformance
