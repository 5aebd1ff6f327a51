// plumbline completion: scripts that complete the command line in bash, zsh and fish. They are made from the parser, so
// that they know what it knows; names of cases, schedules, profiles and mutants come from the program when they are
// used.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "conformance/cli/commands.h"
#include "conformance/protocol/process/process.h"
#include "runtime/text/patterns.h"

namespace plumbline::cli {
namespace {

struct OptionWords {
  std::vector<std::string> names;  ///< "--ranks"; empty: a positional argument
  bool takes_value = false;
  std::vector<std::string> values;  ///< that the parser names
  std::string source;               ///< the words of plumbline that print the values; empty: none
  std::string what;
};

struct CommandWords {
  std::string path;                                              ///< "backend run"; empty: plumbline itself
  std::vector<std::pair<std::string, std::string>> subcommands;  ///< name and description
  std::vector<OptionWords> options;
};

/// What prints the values of an option or of a positional argument: the first word of each line is one.
std::string source_of(const CLI::Option& option) {
  static const std::map<std::string, std::string> sources = {{"--case", "list"},
                                                             {"--schedule", "schedule --list"},
                                                             {"--profile", "list --profiles"},
                                                             {"--mutant", "mutants"},
                                                             {"name", "schedule --list"}};
  const auto found = sources.find(option.get_name());
  return found == sources.end() ? "" : found->second;
}

/// The plain words of a type's name, as in "threads|mpi" and "TEXT:{grid,svg}".
std::vector<std::string> values_in(std::string type) {
  if (const size_t open = type.find('{'); open != std::string::npos) {
    type = type.substr(open + 1, type.find('}') - open - 1);
  } else if (type.find('|') == std::string::npos) {
    return {};
  }
  std::ranges::replace(type, '|', ',');
  std::vector<std::string> words = split_at_commas(type);
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos;
  });
  return words;
}

void add_options(const CLI::App& command, std::vector<OptionWords>& options) {
  for (const CLI::Option* option : options_of(command)) {
    OptionWords words{{},
                      option->get_items_expected_max() > 0,
                      values_in(option->get_type_name()),
                      source_of(*option),
                      first_sentence(option->get_description())};
    for (const std::string& name : option->get_lnames()) words.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.names.push_back("-" + name);
    options.push_back(std::move(words));
  }
}

void add_commands(const CLI::App& command, const std::string& path, std::vector<CommandWords>& commands) {
  const std::vector<const CLI::App*> named =
      command.get_subcommands([](const CLI::App* app) { return !app->get_name().empty(); });
  CommandWords words{path, {}, {}};
  for (const CLI::App* one : named)
    words.subcommands.emplace_back(one->get_name(), first_sentence(one->get_description()));
  add_options(command, words.options);
  commands.push_back(std::move(words));
  for (const CLI::App* one : named)
    add_commands(*one, path.empty() ? one->get_name() : path + " " + one->get_name(), commands);
}

/// A subcommand as the scripts meet it: those before it, a blank, and its name.
std::string as_met(const std::string& path) { return path.find(' ') == std::string::npos ? " " + path : path; }

std::string patterns_of_commands(const std::vector<CommandWords>& commands, const char* separator) {
  std::string patterns;
  for (const CommandWords& command : commands)
    if (!command.path.empty())
      patterns += (patterns.empty() ? "" : separator) + conformance::shell_word(as_met(command.path));
  return patterns;
}

void print_bash(const std::vector<CommandWords>& commands, std::ostream& out) {
  out << R"sh(# Completion of plumbline in bash.
_plumbline_names() {
  "$program" "$@" 2>/dev/null | sed -n 's/^\([^ ]*[a-z][^ ]*\).*/\1/p'
}
_plumbline() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local place='' words='' before='' i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$place ${COMP_WORDS[i]}" in
      )sh"
      << patterns_of_commands(commands, " | ") << R"sh()
        place="${place:+$place }${COMP_WORDS[i]}" ;;
    esac
  done
  case "$place:$previous" in
)sh";
  for (const CommandWords& command : commands)
    for (const OptionWords& option : command.options) {
      if (!option.takes_value || option.names.empty()) continue;
      std::string patterns;
      for (const std::string& name : option.names)
        patterns += (patterns.empty() ? "" : " | ") + conformance::shell_word(command.path + ":" + name);
      out << "    " << patterns << ") words="
          << (option.source.empty() ? conformance::shell_word(join(option.values, " "))
                                    : "$(_plumbline_names " + option.source + ")")
          << " ;;\n";
    }
  out << "    *) case \"$place\" in\n";
  for (const CommandWords& command : commands) {
    std::vector<std::string> words;
    for (const auto& [name, what] : command.subcommands) words.push_back(name);
    std::string positional;
    for (const OptionWords& option : command.options) {
      words.insert(words.end(), option.names.begin(), option.names.end());
      if (option.names.empty() && !option.source.empty()) positional = " $(_plumbline_names " + option.source + ")";
    }
    out << "      '" << command.path << "') words=\"" << join(words, " ") << positional << "\" ;;\n";
  }
  out << R"sh(    esac ;;
  esac
  if [[ "$current" == *,* ]]; then before=${current%,*},; fi
  COMPREPLY=($(compgen -P "$before" -W "$words" -- "${current##*,}"))
}
complete -o default -F _plumbline plumbline
)sh";
}

void print_zsh(const std::vector<CommandWords>& commands, std::ostream& out) {
  out << "#compdef plumbline\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n";
  print_bash(commands, out);
}

/// In single quotes, as fish reads them.
std::string fish_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += (c == '\'' || c == '\\' ? std::string("\\") : "") + c;
  return word + "'";
}

std::string fish_values(const OptionWords& option) {
  if (!option.source.empty()) return " -x -a '(__fish_append , (__plumbline_names " + option.source + "))'";
  if (!option.values.empty()) return " -x -a " + fish_word(join(option.values, " "));
  return option.takes_value ? " -r" : "";
}

void print_fish(const std::vector<CommandWords>& commands, std::ostream& out) {
  out << R"sh(# Completion of plumbline in fish.
function __plumbline_names
    set -l words (commandline -opc)
    $words[1] $argv 2>/dev/null | string match -rg '^([^ ]*[a-z][^ ]*)'
end
function __plumbline_at
    set -l place ''
    for word in (commandline -opc)[2..-1]
        switch "$place $word"
            case )sh"
      << patterns_of_commands(commands, " ") << R"sh(
                set place (string trim "$place $word")
        end
    end
    test "$place" = "$argv"
end
)sh";
  for (const CommandWords& command : commands) {
    const std::string begin = "complete -c plumbline -n " + fish_word("__plumbline_at " + command.path);
    for (const auto& [name, what] : command.subcommands)
      out << begin << " -f -a " << name << " -d " << fish_word(what) << "\n";
    for (const OptionWords& option : command.options) {
      out << begin;
      for (const std::string& name : option.names)
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      if (option.names.empty() && option.source.empty()) {
        out << " -F\n";  // a file
        continue;
      }
      out << fish_values(option) << " -d " << fish_word(option.what) << "\n";
    }
  }
}

}  // namespace

void add_completion(CLI::App& app, Command& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion",
      "Print a script that completes the command line in a shell:\n"
      "  bash  plumbline completion bash > ~/.local/share/bash-completion/completions/plumbline\n"
      "  zsh   plumbline completion zsh > ~/.zsh_plumbline; and in ~/.zshrc: source ~/.zsh_plumbline\n"
      "  fish  plumbline completion fish > ~/.config/fish/completions/plumbline.fish");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &app, &chosen] {
    chosen = [shell, &app] {
      std::vector<CommandWords> commands;
      add_commands(app, "", commands);
      if (*shell == "fish")
        print_fish(commands, std::cout);
      else
        *shell == "zsh" ? print_zsh(commands, std::cout) : print_bash(commands, std::cout);
      return 0;
    };
  });
}

}  // namespace plumbline::cli
