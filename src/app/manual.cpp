#include "app/manual.h"

#include "app/command.h"
#include "base/version.h"

namespace regatta::app {
namespace {

// Characters that roff would take for its own.
std::string escaped(std::string_view text) {
  std::string safe;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else
      safe += c;
    line_begins = c == '\n';
  }
  return safe;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string head(const std::string& page, std::string_view summary) {
  return ".TH " + upper(page) + " 1 \"\" \"regatta " + std::string(version) + "\"\n.SH NAME\n" +
         escaped(page) + " \\- " + escaped(summary) + "\n.SH SYNOPSIS\n";
}

std::string options_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    text += ".TP\n.B " + escaped(option->get_name(/*positional=*/option->get_positional(),
                                                  /*all_options=*/true));
    if (option->get_items_expected_max() > 0) {
      const std::string type =
          option->get_type_name();  // "TEXT:{on,off}" where it lists the values
      text += " " + escaped(type.starts_with("TEXT:{") ? type.substr(5) : type);
      if (!option->get_default_str().empty())
        text += " (default: " + escaped(option->get_default_str()) + ")";
    }
    text += "\n" + escaped(option->get_description()) + "\n";
  }
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    text += ".SS " + escaped(app.get_name() + " " + each->get_name()) + "\n" +
            escaped(each->get_description()) + "\n" + options_of(*each);
  return text;
}

std::string page_of(const Command& command) {
  std::string page = head("regatta-" + std::string(command.name), command.summary);
  visit_flags(command, [&](const CLI::App& app) {
    const bool below = !app.get_subcommands([](const CLI::App*) { return true; }).empty();
    page += ".B " + escaped(app.get_name()) + "\n" + (below ? "COMMAND " : "") + "[FLAGS]";
    for (const CLI::Option* option : app.get_options())
      if (option->get_positional()) page += " " + escaped(upper(option->get_name(true)));
    page += "\n.SH DESCRIPTION\n" + escaped(app.get_description()) + "\n.SH OPTIONS\n" +
            options_of(app);
    if (!app.get_footer().empty())
      page += ".SH EXAMPLES\n.nf\n" + escaped(app.get_footer()) + "\n.fi\n";
  });
  return page +
         ".SH EXIT STATUS\n0 on success; 2, with one line on standard error, when something "
         "in the call must be mended.\n.SH SEE ALSO\n.BR regatta (1)\n";
}

}  // namespace

std::string manual_page(std::string_view command) {
  if (!command.empty()) return page_of(command_named(command));
  std::string page = head("regatta", "trains neural networks on machines that do not match") +
                     ".B regatta\nCOMMAND [FLAGS]\n.SH COMMANDS\n";
  for (const Command& each : commands())
    page += ".TP\n.BR regatta\\-" + escaped(each.name) + " (1)\n" + escaped(each.summary) + "\n";
  return page;
}

}  // namespace regatta::app
