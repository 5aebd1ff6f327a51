"""Files as constants of a C++ source: embed.py NAMESPACE OUT.cc FILE... makes `page_css` of page.css."""

import os
import sys

namespace, out, *paths = sys.argv[1:]
with open(out, "w", encoding="utf-8") as source:
    source.write(f"#include <string_view>\n\nnamespace {namespace} {{\n\n")
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        name = os.path.basename(path).replace(".", "_")
        source.write(f'extern const std::string_view {name} = R"embedded({text})embedded";\n\n')
    source.write(f"}}  // namespace {namespace}\n")
