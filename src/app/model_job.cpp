#include "app/model_job.h"

#include "app/bench_cell.h"
#include "app/command.h"

namespace regatta::app {
namespace {

constexpr std::int64_t made_up_steps = 100;  // of made-up images, which are not looked at

}  // namespace

void declare_model(CLI::App& app, ModelFlags& flags) {
  app.add_option("--model", flags.model, "a name that regatta models lists")
      ->required()
      ->type_name("NAME");
  app.add_option("--batch", flags.batch, "images per step")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--input", flags.input, "image size, if not the model's own")->type_name("CxHxW");
  app.add_option("--classes", flags.classes, "classes, if not the model's own")
      ->type_name("N")
      ->check(whole_number(2));
}

TrainJob job_of(const ModelFlags& flags) {
  CellOptions cell;
  cell.model = flags.model;
  cell.input = flags.input;
  cell.batch = flags.batch;
  cell.classes = flags.classes;
  cell.steps = made_up_steps;
  JobOptions options;
  options.model = flags.model;
  options.batch = flags.batch;
  options.classes = flags.classes;
  if (flags.input) options.input = Shape::parse(*flags.input);
  options.test = "none";
  options.data = bench_data(cell);
  return make_job(options);
}

}  // namespace regatta::app
