#include "base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace regatta {
namespace {

constexpr std::chrono::milliseconds live_pause{100};
constexpr std::chrono::seconds plain_pause{10};
constexpr int plain_columns = 100;
constexpr int narrowest_bar = 10, widest_bar = 30;

bool is_terminal(const std::ostream& out) { return &out == &std::cerr && ::isatty(STDERR_FILENO); }

int terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

double fraction_done(const ProgressState& state) {
  if (state.total <= 0) return 0.0;
  return std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0);
}

}  // namespace

std::string duration_text(Seconds duration) {
  if (!(duration.count() < 4.0 * 86400.0))
    return format("%.0f days", std::min(duration.count() / 86400.0, 99999.0));
  const auto seconds = static_cast<int>(std::lround(std::max(duration.count(), 0.0)));
  const int hours = seconds / 3600, minutes = seconds / 60 % 60;
  if (hours == 0) return format("%d:%02d", minutes, seconds % 60);
  return format("%d:%02d:%02d", hours, minutes, seconds % 60);
}

std::string progress_line(const ProgressState& state, int columns) {
  const double done = fraction_done(state);
  const bool epoch = state.task.empty();
  std::string head =
      epoch ? "epoch " + std::to_string(state.epoch) + "/" + std::to_string(state.epochs)
            : state.task;
  std::string tail = format(" %3.0f%%", std::floor(100.0 * done));
  tail +=
      format("  %.*f images/s", state.images_per_second < 10.0 ? 2 : 0, state.images_per_second);
  if (epoch) tail += format("  loss %.4g", state.loss);
  if (state.left) tail += "  " + duration_text(*state.left) + " left";

  const auto width = static_cast<std::size_t>(std::max(columns, 0));
  const int room = columns - static_cast<int>(head.size() + tail.size()) - 3;  // " [" and "]"
  if (room >= narrowest_bar) {
    const int bar = std::min(room, widest_bar);
    const auto filled = static_cast<std::size_t>(done * bar);
    head += " [" + std::string(filled, '#') +
            std::string(static_cast<std::size_t>(bar) - filled, '-') + "]";
  }
  return (head + tail).substr(0, width);
}

Progress::Progress(std::ostream& out)
    : Progress(out, is_terminal(out), is_terminal(out) ? terminal_columns() : plain_columns) {}

Progress::Progress(std::ostream& out, bool live, int columns)
    : out_(out), live_(live), columns_(columns) {}

Progress::~Progress() { leave_line(); }

void Progress::leave_line() {
  if (drawn_) out_ << '\n' << std::flush;
  drawn_ = false;
}

void Progress::clear_line() {
  if (drawn_) out_ << "\r\033[K";  // to the line's beginning, then erase to its end
  drawn_ = false;
}

void Progress::update(const ProgressState& state, Clock::time_point now) {
  // A log's first line comes after the first pause: an epoch shorter than it is one line.
  if (!last_ && !live_) last_ = now;
  const Clock::duration pause = live_ ? Clock::duration(live_pause) : Clock::duration(plain_pause);
  if (last_ && now - *last_ < pause) return;
  last_ = now;
  clear_line();
  // One column stays free: a full line would wrap on some terminals.
  out_ << progress_line(state, live_ ? columns_ - 1 : columns_);
  if (!live_) out_ << '\n';
  out_ << std::flush;
  drawn_ = live_;
}

void Progress::finish_epoch(const ProgressState& state, Clock::time_point now) {
  last_ = now;
  clear_line();
  out_ << progress_line(state, live_ ? columns_ - 1 : columns_) << '\n' << std::flush;
}

void Progress::message(const std::string& text) {
  clear_line();
  out_ << text << '\n' << std::flush;
}

void Progress::note(const std::string& text) {
  if (!live_ && !noted_) message(text);
  noted_ = true;
  if (!live_) return;
  clear_line();
  out_ << text.substr(0, static_cast<std::size_t>(std::max(columns_ - 1, 0))) << std::flush;
  drawn_ = true;
}

}  // namespace regatta
