#include "app/completion.h"

#include "app/command.h"
#include "base/error.h"

namespace regatta::app {
namespace {

// "TEXT:{on,off}" -> "on off": CLI11 shows the values of CLI::IsMember so.
std::string values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return "";
  std::string values = type.substr(begin + 1, end - begin - 1);
  std::ranges::replace(values, ',', ' ');
  return values;
}

// One pattern of the script's table: what may stand after `before`.
std::string row(const std::string& before, const std::string& words) {
  return "    \"" + before + "\") echo \"" + words + "\" ;;\n";
}

struct Script {
  std::string table;        // rows "COMMAND FLAG" (a flag's values), "COMMAND -" (its flags) and
                            // "COMMAND " (its subcommands)
  std::string subcommands;  // "data get"|"data info"|...

  void add(const std::string& command, const CLI::App& app) {
    std::string flags, below;
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) {
        flags += (flags.empty() ? "--" : " --") + name;
        if (option->get_items_expected_max() > 0)
          table += row(command + " --" + name, values_of(*option));
      }
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
      const std::string whole = command + " " + each->get_name();
      below += (below.empty() ? "" : " ") + each->get_name();
      subcommands += "\"" + whole + "\" | ";
      add(whole, *each);
    }
    table += row(command + " -", flags) + row(command + " ", below);
  }
};

constexpr std::string_view choose = R"sh(
# The words that may follow: $1 and $2 are the first two arguments, $3 the word before the cursor, $4
# the word at the cursor. None: a file name.
_regatta_words() {
  local command=$1
  case "$1 $2" in
    SUBCOMMANDS) command="$1 $2" ;;
  esac
  _regatta_table "$command $3" && return
  case $4 in
    -*) _regatta_table "$command -" ;;
    *) _regatta_table "$command " ;;
  esac
}
)sh";

constexpr std::string_view bash_end = R"sh(
_regatta() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} first= second=
  ((COMP_CWORD > 1)) && first=${COMP_WORDS[1]}
  ((COMP_CWORD > 2)) && second=${COMP_WORDS[2]}
  COMPREPLY=($(compgen -W "$(_regatta_words "$first" "$second" "$before" "$current")" -- "$current"))
}
complete -o default -F _regatta regatta
)sh";

constexpr std::string_view zsh_end = R"sh(
_regatta() {
  local first= second=
  local -a found
  ((CURRENT > 2)) && first=${words[2]}
  ((CURRENT > 3)) && second=${words[3]}
  found=($(_regatta_words "$first" "$second" "${words[CURRENT - 1]}" "${words[CURRENT]}"))
  if (($#found)); then compadd -- $found; else _files; fi
}
_regatta "$@"
)sh";

}  // namespace

std::string completion_script(std::string_view shell) {
  const bool bash = shell == "bash";
  if (!bash && shell != "zsh")
    throw InputError("completion '" + std::string(shell) + "' is unknown: there are bash and zsh");
  Script script;
  std::string names;
  for (const Command& command : commands()) {
    names += std::string(names.empty() ? "" : " ") + std::string(command.name);
    visit_flags(command, [&](const CLI::App& app) { script.add(std::string(command.name), app); });
  }
  script.table += row(" -", "--help --version") + row(" ", names + " help completion manual");
  script.table += row("completion ", "bash zsh") + row("help ", names) + row("manual ", names);
  std::string middle(choose);
  const std::string_view place = "SUBCOMMANDS";
  middle.replace(middle.find(place), place.size(), script.subcommands + "\"\"");
  return std::string(bash ? "" : "#compdef regatta\n") + "# Made by: regatta completion " +
         std::string(shell) + "\n\n" + "_regatta_table() {\n  case $1 in\n" + script.table +
         "    *) return 1 ;;\n  esac\n}\n" + middle + std::string(bash ? bash_end : zsh_end);
}

}  // namespace regatta::app
