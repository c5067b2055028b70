// `tickets export`: a ticket as a file of weights that PyTorch's pruning utilities understand.
#include <cstdio>
#include <memory>

#include "app/command.h"
#include "app/ticket_source.h"
#include "app/tickets_command.h"
#include "tickets/export.h"

namespace regatta::app {
namespace {

struct ExportFlags {
  std::string from, out;
  std::optional<std::string> mask, json_file;
};

int run_export(const ExportFlags& flags) {
  TicketSource source = ticket_source(flags.from);
  const Mask mask = mask_of(source, flags.mask);
  const TensorFile file = tickets::for_pytorch(std::move(source.file), mask);
  write_safetensors(flags.out, file);
  std::printf("%s: %zu tensors, %zu of them with a mask; %.2f%% of their weights stay\n",
              flags.out.c_str(), file.tensors.size() - mask.tensors.size(), mask.tensors.size(),
              100 * mask.density());
  write_json_result(flags.json_file, {{"file", flags.out},
                                      {"checkpoint", source.checkpoint.string()},
                                      {"mask", mask.fingerprint()},
                                      {"density", mask.density()}});
  return 0;
}

}  // namespace

std::function<int()> declare_tickets_export(CLI::App& app) {
  const auto flags = std::make_shared<ExportFlags>();
  declare_ticket(app, flags->from, flags->mask);
  app.add_option("--out", flags->out, "the weights, with weight_orig and weight_mask by layer")
      ->required()
      ->type_name("FILE");
  add_json_flag(app, flags->json_file);
  app.footer("Example:\n  regatta tickets export runs/ticket --out ticket.safetensors");
  return [flags] { return run_export(*flags); };
}

}  // namespace regatta::app
