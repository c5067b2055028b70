// What a search found: accuracies by pruning level and reset point, beside the controls, and how
// well the workers were used. Plain data from the logs of its jobs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tickets/folder.h"

namespace regatta::tickets {

// A job that is done.
struct ResultRow {
  Job job;
  double density = 1;  // part of the maskable weights that is there
  std::optional<double> test_accuracy, test_loss;
  double train_loss = 0;
  double seconds = 0, images_per_s = 0;  // of the worker that finished it
  std::optional<double> joules;
  bool joules_measured = false;
  std::string worker, machine;
  struct Layer {
    std::string name;
    double density = 1;
  };
  std::vector<Layer> layers;
};

// The time that a worker spent on a job, by its own machine's time of day.
struct WorkSpan {
  std::string worker, machine, job;
  double begin = 0, end = 0;  // seconds since 1970
  bool finished = false;      // else it was given back, broke off or was taken over
};

// Jobs that differ in their seed alone.
struct Cell {
  JobKind kind = JobKind::dense;
  std::int64_t reset = 0;
  int level = 0;
  double density = 1;
  int seeds = 0;
  double mean = 0, low = 0, high = 0;  // test accuracy: mean, least and largest over seeds
};

// Where tickets of a reset point begin to win: from this level on to the last, the worst ticket is
// better than the best control.
struct Win {
  std::int64_t reset = 0;
  JobKind over = JobKind::random;
  std::optional<int> level;  // none: nowhere
  double margin = 0;         // at the last level: mean of tickets less mean of controls
  double spread = 0;         // at the last level: the larger of both ranges over seeds
};

// How well the workers were used. A worker that was started again on the same machine, after it had
// ended, counts as the same one; times in which no worker had a job for longer than a lease, such
// as nights between two sittings, do not count.
struct Scaling {
  std::size_t workers = 0;
  // Seconds that all finished jobs would take on the fastest worker alone, with as many jobs side
  // by side as it ran.
  double work_s = 0;
  double span_s = 0;       // from the first claim to the last result, without pauses
  double pauses_s = 0;     // in which no worker had a job
  double speed_up = 0;     // work / span
  double ideal = 0;        // all workers' speeds together, each with its jobs side by side, beside
                           // the fastest worker's
  double of_ideal = 0;     // speed_up / ideal
  double chain_share = 0;  // of the work: the longest chain of jobs that wait for each other
  struct Point {
    int workers = 1;
    double planned = 1;  // speed-up of whole jobs on so many equal workers
    double amdahl = 1;   // with the longest chain as the serial share
  };
  std::vector<Point> curve;
};

struct Results {
  std::vector<ResultRow> rows;
  std::vector<WorkSpan> spans;
  std::vector<Cell> cells;
  std::vector<Win> wins;
  Scaling scaling;
  std::size_t jobs = 0;

  const Cell* find(JobKind kind, std::int64_t reset, int level) const;
};

Results results_of(const SearchFolder& folder);

std::string results_table(const Results& results, const Search& search);
std::string results_csv(const Results& results);
Json to_json(const Results& results, const Search& search);

}  // namespace regatta::tickets
