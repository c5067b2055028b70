// profile/: what work costs on this machine: robust fits with intervals, stored on disk. It only
// fits and stores; whoever can run things measures.
#pragma once

namespace regatta {

// A number of seconds with its 95% interval.
struct Estimate {
  double seconds = 0, low = 0, high = 0;
};

// What the runtime costs besides the work itself, in seconds.
struct RuntimeCosts {
  double task = 5e-6;        // on the worker, between one task and the next
  double submission = 3e-6;  // on the submitting thread, per task
  double dependency = 2e-7;  // likewise, per buffer that a task names
  double wake = 5e-6;        // from the end of a task to the start of one that waited for it
  double byte = 1e-10;       // copied between memories
};

}  // namespace regatta
