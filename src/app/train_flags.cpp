#include "app/train_flags.h"

#include "app/command.h"

namespace regatta::app {

void declare(CLI::App& app, TrainFlags& flags) {
  JobOptions& job = flags.job;
  app.add_option("--model", job.model,
                 "a name that regatta models lists, such as resnet18, or a network of one's own:\n"
                 "net.json, or net.onnx with its weights")
      ->type_name("NAME|FILE");
  app.add_option("--data", job.data,
                 "mnist, fashion-mnist, digits-synth, cifar10-synth, imagenet-synth,\n"
                 "folder:DIR, shards:DIR, tfrecord:GLOB, cifar10:DIR, cifar100:DIR,\n"
                 "idx:IMAGES,LABELS, npy:X.npy,Y.npy or synth:CxHxW/CLASSES@COUNT")
      ->type_name("SPEC");
  app.add_option("--test", job.test,
                 "data to test on after each epoch, or none (default: the data's own test split,\n"
                 "but nothing if --steps are less than an epoch)")
      ->type_name("SPEC");
  app.add_option("--epochs", flags.epochs, "passes over the data (default 1)")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--steps", flags.steps, "steps instead of epochs")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--batch", job.batch, "images per step")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  declare_recipe(app, flags.recipe);
  app.add_option("--seed", job.seed, "of weights, order and synthetic data")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--shuffle", flags.shuffle, "visit the data in a new order each epoch")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--input", flags.input, "image size, if not the data's")->type_name("CxHxW");
  app.add_option("--augment", job.augment,
                 "random changes to training images, such as crop:4,flip or\n"
                 "resize-crop:224,flip,jitter:0.4")
      ->type_name("HOW");
  app.add_option("--normalise", job.normalise,
                 "MEANS:DEVIATIONS, or none, imagenet, cifar10, ... (default: the data's)")
      ->type_name("HOW");
  app.add_flag("--strict", job.strict, "an image that cannot be read ends the run");
  app.add_option("--classes", job.classes, "classes, if not the data's")
      ->type_name("N")
      ->check(whole_number(2));
  app.add_option("--init", flags.init,
                 "start from these weights; classes are matched by name, if both have names")
      ->type_name("FILE");
  app.add_option("--from", flags.from,
                 "start where another run stood: weights, optimizer state, step and order of data\n"
                 "of this checkpoint")
      ->type_name("CHECKPOINT");
  app.add_flag("--new-classes", job.new_classes,
               "the outputs of --init or of net.onnx become the data's classes, whatever they\n"
               "were trained on");
  app.add_option("--granularity", flags.granularity,
                 "auto: segments, chunks, teams and the number of workers are chosen by predicted\n"
                 "times, but for what is given; fixed: a rule of thumb")
      ->type_name("KIND")
      ->capture_default_str();
  app.add_flag("--explain", flags.explain,
               "print the choice of --granularity auto, the runners-up and their predicted times,\n"
               "and train nothing");
  app.add_option("--workers", job.workers,
                 "CPU workers, at most (default: the CPUs this process may use)")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--chunks", flags.chunks, "cut the batch into N chunks, or into sizes such as 3,5")
      ->type_name("N|SIZES");
  app.add_option("--team", job.plan.team,
                 "threads that work on a chunk together; --workers counts all of them")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option(
         "--devices", flags.devices,
         "cpu, cuda, cpu,cuda (both compute, by what each is predicted to reach), or auto:\n"
         "without a GPU the CPUs; else whichever of the three is the fastest")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option(
         "--shares", flags.shares,
         "a chunk for each CPU worker: equal, or speed, which makes up for --slow; or\n"
         "samples of the batch for each of --devices, such as 8,56. Over several ranks: equal,\n"
         "speed (as measured at the start, default) or samples of each")
      ->type_name("SIZES");
  app.add_option("--layout", flags.layout,
                 "of images on GPUs: nhwc or nchw (default: in fp32 the faster one, else nhwc)")
      ->check(CLI::IsMember({"nhwc", "nchw"}));
  app.add_option("--loaders", job.plan.loaders,
                 "CPU workers that load for a GPU that computes alone (default: all but two of\n"
                 "--workers, 16 at most); --devices auto may choose plans without them")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--prefetch", job.plan.steps_in_flight,
                 "batches on their way at once: one computes while the others are loaded\n"
                 "(default: 4 for a GPU)")
      ->type_name("N")
      ->check(whole_number(1, 64));
  app.add_option("--precision", flags.precision, "fp32, bf16, or on GPUs tf32")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--segments", job.plan.segments,
                 "gather operators: op, block, step or a number of segments")
      ->type_name("HOW");
  app.add_option("--reduction", flags.reduction, "how gradients come together: slots, redux, loop")
      ->type_name("HOW")
      ->capture_default_str();
  add_backward_flag(app, flags.backward);
  add_recompute_flag(app, job.plan.recompute);
  app.add_option("--scheduler", flags.scheduler,
                 "regatta, or a scheduler of StarPU's such as eager, lws or dmda\n"
                 "(default: STARPU_SCHED, or regatta)")
      ->type_name("NAME");
  app.add_option(
         "--perf-model", flags.perf_model,
         "what schedulers such as dmda are told of a task's time: fitted (by the profile),\n"
         "or learned by StarPU: history, regression")
      ->type_name("KIND")
      ->capture_default_str();
  app.add_flag("--no-refine", flags.no_refine,
               "leave this machine's profile of costs as it is: a few timed steps refine it");
  app.add_flag("--deterministic", job.plan.deterministic,
               "the same bits for any number of workers and any scheduler");
  app.add_option("--save-gradients", flags.save_gradients, "write the first step's gradients")
      ->type_name("FILE");
  app.add_option("--out", flags.out, "run folder (default: runs/MODEL-DATA-TIME)")
      ->type_name("FOLDER");
  app.add_option("--checkpoint-every", flags.checkpoint_every,
                 "save after so many steps or so much time, such as 500, 30s, 10m, 2h\n"
                 "(always: after each epoch and at the end)")
      ->type_name("N|TIME");
  app.add_option("--checkpoint-at", flags.checkpoint_at,
                 "save after these steps too, and keep that: checkpoints/kept-N")
      ->type_name("N,...");
  app.add_option("--keep", flags.keep, "checkpoints that stay, besides the best (default 2)")
      ->type_name("N")
      ->check(whole_number(1, 1000000));
  app.add_option("--resume", flags.resume, "go on with this run, to --epochs or --steps")
      ->type_name("FOLDER");
  add_json_flag(app, flags.json_file);
  add_trace_flags(app, flags.trace);
  add_placement_flags(app, flags.placement);
  add_rank_flags(app, flags.ranks);
  app.footer(
      "Example:\n  regatta train --model lenet5 --data mnist --epochs 3 --batch 64 --lr 0.02");
}

}  // namespace regatta::app
