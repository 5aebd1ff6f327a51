"""Files as constants of a C++ source: embed.py NAMESPACE OUT.cc FILE... makes `page_css` of page.css, and `OUT` of all names
and texts, in the order given."""

import os
import sys

namespace, out, *paths = sys.argv[1:]
names = [os.path.basename(path) for path in paths]
table = os.path.basename(out).removesuffix(".cc")
pair = "std::pair<std::string_view, std::string_view>"
with open(out, "w", encoding="utf-8") as source:
    source.write(f"#include <span>\n#include <string_view>\n#include <utility>\n\nnamespace {namespace} {{\n\n")
    for name, path in zip(names, paths):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        source.write(f'extern constexpr std::string_view {name.replace(".", "_")} = R"embedded({text})embedded";\n\n')
    rows = "".join(f'    {{"{name}", {name.replace(".", "_")}}},\n' for name in names)
    source.write(f"static constexpr {pair} {table}_rows[] = {{\n{rows}}};\n")
    source.write(f"extern const std::span<const {pair}> {table}({table}_rows);\n\n")
    source.write(f"}}  // namespace {namespace}\n")
