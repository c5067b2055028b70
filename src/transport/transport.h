// transport/: messages between the processes of one run. A process is called a rank. Over MPI where
// a launcher of MPI started the program (opened only then), or between objects of one process, for
// tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

namespace regatta {

// A message on its way. Its memory must stay until it is done; that of a message that is given up,
// by destroying it, is left to the transport: see Transport::leave().
class Message {
 public:
  virtual ~Message() = default;
  // Looks, and lets all messages of the rank advance: nothing advances by itself.
  virtual bool done() = 0;
};

// Messages between two ranks with the same tag arrive in the order of sending.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int largest_tag() const = 0;
  // Both return at once.
  virtual std::unique_ptr<Message> send(int to, int tag, std::span<const std::byte> data) = 0;
  virtual std::unique_ptr<Message> receive(int from, int tag, std::span<std::byte> data) = 0;
  // Adds the values of all ranks, in the library's own way; null: it has none. All ranks name the
  // same `channel`, at most one at a time for each.
  virtual std::unique_ptr<Message> sum(int channel, std::span<float> values) = 0;
  // How many channels sum() will be asked for; called by all ranks together, before the first.
  virtual void open_channels(int count) = 0;
  // Takes memory over that messages used. Where one of them was given up before it was done, which
  // may read or write that memory for as long as the transport lives, it stays until then.
  virtual void leave(std::shared_ptr<const void> memory) = 0;
  // Ends all ranks, now; used when waiting for them would be in vain. The launcher then exits with
  // this code; Open MPI's mpirun with 1 instead of 0.
  [[noreturn]] virtual void end_all(int code) = 0;
  // Limits how long the destructor waits for the other ranks to reach theirs: after `patience` it
  // ends all ranks with this exit code. Without this call: 15 s, and 75, the code of runs that can
  // be tried again.
  virtual void end_within(std::chrono::milliseconds patience, int code) = 0;
};

// Tags below this are for collectives.h and control messages.
constexpr int first_free_tag = 16;

}  // namespace regatta
