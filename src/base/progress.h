// What a training run shows while it works: on a terminal one line that is redrawn, elsewhere (a
// file, a pipe) plain lines at a pace a log can bear.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "base/ids.h"

namespace regatta {

struct ProgressState {
  std::string task = {};               // stands in place of the epoch; no loss is shown then
  std::int64_t epoch = 1, epochs = 1;  // counted from 1
  std::int64_t done = 0, total = 0;    // images of this epoch
  double images_per_second = 0.0;
  double loss = 0.0;
  std::optional<Seconds> left;  // until the whole run ends, once it can be told
};

// "epoch 2/5 [#####-----] 50%  12345 images/s  loss 0.1234  0:42 left", cut to `columns`; the bar
// takes what room there is and goes first when there is too little.
std::string progress_line(const ProgressState& state, int columns);

// 42 s -> "0:42", 3723 s -> "1:02:03", more than four days -> "5 days".
std::string duration_text(Seconds duration);

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // Watches the terminal behind stderr if `out` is std::cerr and it is one.
  explicit Progress(std::ostream& out);
  Progress(std::ostream& out, bool live, int columns);
  ~Progress();  // leave_line()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call it as often as there is news: it draws at most ten times a second on a terminal and writes
  // at most every ten seconds elsewhere.
  void update(const ProgressState& state, Clock::time_point now = Clock::now());

  // An epoch is over: its line stays.
  void finish_epoch(const ProgressState& state, Clock::time_point now = Clock::now());

  // A message between updates: it stands on a line of its own, above the live one.
  void message(const std::string& text);

  // What goes on before the first step: on a terminal it is the live line, redrawn at each call;
  // elsewhere the first call alone writes its text, as a line.
  void note(const std::string& text);

  // Ends the live line, if there is one: whatever is printed next begins a line of its own.
  void leave_line();

 private:
  void clear_line();

  std::ostream& out_;
  bool live_;
  int columns_;
  bool drawn_ = false;  // a live line stands where the cursor is
  bool noted_ = false;  // note() was called
  std::optional<Clock::time_point> last_;
};

}  // namespace regatta
