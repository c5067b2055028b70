// Ranks over MPI. Built as a library of its own: see transport/launcher.h.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "transport/mpi_library.h"

namespace regatta {
namespace {

// MPI's own functions: see mpi_library.h.
struct Mpi {
  decltype(&MPI_Init_thread) init_thread;
  decltype(&MPI_Finalize) finalize;
  decltype(&MPI_Abort) abort;
  decltype(&MPI_Comm_dup) comm_dup;
  decltype(&MPI_Comm_free) comm_free;
  decltype(&MPI_Comm_rank) comm_rank;
  decltype(&MPI_Comm_size) comm_size;
  decltype(&MPI_Comm_get_attr) comm_get_attr;
  decltype(&MPI_Isend) isend;
  decltype(&MPI_Irecv) irecv;
  decltype(&MPI_Iallreduce) iallreduce;
  decltype(&MPI_Test) test;
  decltype(&MPI_Cancel) cancel;
  decltype(&MPI_Request_free) request_free;
} mpi;

// Whether all were found.
bool find_functions(void* library) {
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    all = all && function;
  };
  find(mpi.init_thread, "MPI_Init_thread");
  find(mpi.finalize, "MPI_Finalize");
  find(mpi.abort, "MPI_Abort");
  find(mpi.comm_dup, "MPI_Comm_dup");
  find(mpi.comm_free, "MPI_Comm_free");
  find(mpi.comm_rank, "MPI_Comm_rank");
  find(mpi.comm_size, "MPI_Comm_size");
  find(mpi.comm_get_attr, "MPI_Comm_get_attr");
  find(mpi.isend, "MPI_Isend");
  find(mpi.irecv, "MPI_Irecv");
  find(mpi.iallreduce, "MPI_Iallreduce");
  find(mpi.test, "MPI_Test");
  find(mpi.cancel, "MPI_Cancel");
  find(mpi.request_free, "MPI_Request_free");
  return all;
}

// A message to or from one rank.
class MpiMessage : public Message {
 public:
  // `given_up` is set if the message is destroyed before it is done; it must outlive this.
  MpiMessage(bool receives, std::atomic<bool>& given_up)
      : receives_(receives), given_up_(given_up) {}
  // Gives up a message on its way. A receive whose cancelling has ended writes no more to its
  // memory; one that has begun to arrive cannot be cancelled, and neither can what is sent.
  ~MpiMessage() override {
    constexpr int tries = 1000;
    if (request_ == MPI_REQUEST_NULL) return;
    if (receives_) mpi.cancel(&request_);
    for (int i = 0; i < tries && !done(); ++i) {
    }
    if (request_ == MPI_REQUEST_NULL) return;
    mpi.request_free(&request_);
    given_up_ = true;
  }
  MpiMessage(const MpiMessage&) = delete;
  MpiMessage& operator=(const MpiMessage&) = delete;
  MPI_Request& request() { return request_; }
  bool done() override {
    int flag = 0;
    mpi.test(&request_, &flag, MPI_STATUS_IGNORE);
    return flag != 0;
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool receives_;
  std::atomic<bool>& given_up_;
};

// An all-reduce with the memory it works on. MPI can neither cancel nor free a collective that has
// begun, and may still read and write that memory.
struct Sum {
  MPI_Request request = MPI_REQUEST_NULL;
  std::vector<float> values;
};

class MpiSum : public Message {
 public:
  // `abandoned` takes over a sum that is unfinished when this is destroyed; it must outlive this.
  MpiSum(std::span<float> values, MPI_Comm channel, int count, std::vector<Sum>& abandoned)
      : target_(values), abandoned_(abandoned) {
    sum_.values.assign(values.begin(), values.end());
    mpi.iallreduce(MPI_IN_PLACE, sum_.values.data(), count, MPI_FLOAT, MPI_SUM, channel,
                   &sum_.request);
  }
  ~MpiSum() override {
    if (sum_.request != MPI_REQUEST_NULL) abandoned_.push_back(std::move(sum_));
  }
  MpiSum(const MpiSum&) = delete;
  MpiSum& operator=(const MpiSum&) = delete;
  bool done() override {
    if (sum_.request == MPI_REQUEST_NULL) return true;
    int flag = 0;
    mpi.test(&sum_.request, &flag, MPI_STATUS_IGNORE);
    if (flag != 0) std::ranges::copy(sum_.values, target_.begin());
    return flag != 0;
  }

 private:
  Sum sum_;
  std::span<float> target_;
  std::vector<Sum>& abandoned_;
};

int count_of(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(INT_MAX))
    throw Error("a message of " + std::to_string(bytes) + " bytes is too long for MPI");
  return static_cast<int>(bytes);
}

constexpr int try_again_code = 75;  // the exit code of runs that can be tried again

// Calls `late` unless it is destroyed within the time. MPI_Init and MPI_Finalize have no time limit
// and never return if another rank was stopped before it has called them too.
class Watch {
 public:
  Watch(std::chrono::milliseconds time, std::function<void()> late)
      : time_(time), late_(std::move(late)) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, time_, [this] { return over_; })) late_();
  }

  const std::chrono::milliseconds time_;
  const std::function<void()> late_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_{[this] { run(); }};  // last: it uses all of the above
};

class MpiTransport : public Transport {
 public:
  MpiTransport() {
    mpi.comm_dup(MPI_COMM_WORLD, &ranks_);
    mpi.comm_rank(ranks_, &rank_);
    mpi.comm_size(ranks_, &size_);
    void* value = nullptr;
    int found = 0;
    mpi.comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
    largest_tag_ = found ? *static_cast<int*>(value) : 32767;
  }
  ~MpiTransport() override {
    std::fflush(nullptr);  // what was printed stays, even if this ends the process
    if (patience_.count() == 0) MpiTransport::end_all(code_);
    // The first rank is the first to lose patience, so that one line is printed.
    const std::chrono::seconds later(rank_ > 0 ? 2 : 0);
    const Watch watch(patience_ + later, [this] {
      std::cerr << "regatta: another rank does not end: ending all\n";
      MpiTransport::end_all(code_);
    });
    end_unfinished();
    if (abandoned_.empty())
      for (MPI_Comm& channel : channels_) mpi.comm_free(&channel);
    mpi.comm_free(&ranks_);
    mpi.finalize();
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int largest_tag() const override { return largest_tag_; }

  std::unique_ptr<Message> send(int to, int tag, std::span<const std::byte> data) override {
    auto message = std::make_unique<MpiMessage>(false, given_up_);
    mpi.isend(data.data(), count_of(data.size()), MPI_BYTE, to, tag, ranks_, &message->request());
    return message;
  }
  std::unique_ptr<Message> receive(int from, int tag, std::span<std::byte> data) override {
    auto message = std::make_unique<MpiMessage>(true, given_up_);
    mpi.irecv(data.data(), count_of(data.size()), MPI_BYTE, from, tag, ranks_, &message->request());
    return message;
  }
  std::unique_ptr<Message> sum(int channel, std::span<float> values) override {
    return std::make_unique<MpiSum>(values, channels_.at(static_cast<std::size_t>(channel)),
                                    count_of(values.size()), abandoned_);
  }
  void open_channels(int count) override {
    while (channels_.size() < static_cast<std::size_t>(count))
      mpi.comm_dup(ranks_, &channels_.emplace_back());
  }
  void leave(std::shared_ptr<const void> memory) override {
    const std::lock_guard lock(kept_mutex_);
    if (given_up_) kept_.push_back(std::move(memory));
  }
  void end_all(int code) override {
    // A rank that exits without MPI_Finalize is enough for Open MPI's mpirun to end the others.
    // Asked by MPI_Abort, it crashes more often in its own clean-up if another rank is stopped, or
    // hangs.
    if (!std::getenv("OMPI_COMM_WORLD_RANK")) mpi.abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }
  void end_within(std::chrono::milliseconds patience, int code) override {
    patience_ = patience;
    code_ = code;
  }

 private:
  // Waits 0.1 s for abandoned sums to end; they only end if the other ranks begin them too. Those
  // that do not end keep their memory until MPI_Finalize.
  void end_unfinished() {
    constexpr int tries = 100;
    const auto over = [](Sum& sum) {
      int flag = 0;
      mpi.test(&sum.request, &flag, MPI_STATUS_IGNORE);
      return flag != 0;
    };
    for (int i = 0; i < tries && !abandoned_.empty(); ++i) {
      std::erase_if(abandoned_, over);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  MPI_Comm ranks_ = MPI_COMM_NULL;
  // Collective operations of one communicator must start in the same order on all ranks; buckets
  // become ready in any order, so each has a communicator of its own.
  std::vector<MPI_Comm> channels_;
  std::vector<Sum> abandoned_;
  std::atomic<bool> given_up_ = false;  // some message was, so MPI may use memory in kept_
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<const void>> kept_;  // until MPI_Finalize has ended
  int rank_ = 0, size_ = 1, largest_tag_ = 32767;
  std::chrono::milliseconds patience_{15000};
  int code_ = try_again_code;
};

// What Open MPI should do unless the user says otherwise. TCP and shared memory rather than
// whatever UCX or libfabric find: they progress in threads of their own that compete with workers.
void set_defaults() {
  for (const auto& [name, value] :
       {std::pair{"OMPI_MCA_pml", "ob1"}, std::pair{"OMPI_MCA_btl", "tcp,self,vader"},
        std::pair{"OMPI_MCA_osc", "^ucx"},
        // A wait gives the CPU to a worker that has work.
        std::pair{"OMPI_MCA_mpi_yield_when_idle", "1"}})
    ::setenv(name, value, 0);
}

}  // namespace
}  // namespace regatta

extern "C" __attribute__((visibility("default"))) regatta::Transport* regatta_open_mpi(
    void* library, std::string& trouble) {
  using regatta::mpi;
  if (!regatta::find_functions(library)) {
    trouble = "its library lacks functions of MPI 3";
    return nullptr;
  }
  regatta::set_defaults();
  int given = MPI_THREAD_SINGLE;
  {
    const regatta::Watch watch(std::chrono::minutes(2), [] {
      std::cerr << "regatta: MPI did not start within two minutes; is a rank stopped or out of "
                   "reach?"
                << std::endl;
      std::_Exit(regatta::try_again_code);
    });
    if (mpi.init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given) != MPI_SUCCESS) {
      trouble = "MPI_Init_thread failed";
      return nullptr;
    }
  }
  if (given < MPI_THREAD_MULTIPLE) {
    trouble = "this MPI does not let several threads call it (MPI_THREAD_MULTIPLE)";
    mpi.finalize();
    return nullptr;
  }
  return new regatta::MpiTransport();  // NOLINT(cppcoreguidelines-owning-memory): taken over
}
