// Ranks over MPI. Built as a library of its own: see transport/launcher.h.
#include <mpi.h>

#include <climits>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/error.h"
#include "transport/mpi_library.h"

namespace regatta {
namespace {

class MpiMessage : public Message {
 public:
  explicit MpiMessage(bool receives) : receives_(receives) {}
  // One that is given up: the run is at its end.
  ~MpiMessage() override {
    if (request_ == MPI_REQUEST_NULL) return;
    if (receives_) MPI_Cancel(&request_);
    MPI_Request_free(&request_);
  }
  MpiMessage(const MpiMessage&) = delete;
  MpiMessage& operator=(const MpiMessage&) = delete;
  MPI_Request& request() { return request_; }
  bool done() override {
    int flag = 0;
    MPI_Test(&request_, &flag, MPI_STATUS_IGNORE);
    return flag != 0;
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool receives_;
};

int count_of(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(INT_MAX))
    throw Error("a message of " + std::to_string(bytes) + " bytes is too long for MPI");
  return static_cast<int>(bytes);
}

class MpiTransport : public Transport {
 public:
  MpiTransport() {
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_rank(ranks_, &rank_);
    MPI_Comm_size(ranks_, &size_);
    void* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
    largest_tag_ = found ? *static_cast<int*>(value) : 32767;
  }
  ~MpiTransport() override {
    for (MPI_Comm& channel : channels_) MPI_Comm_free(&channel);
    MPI_Comm_free(&ranks_);
    MPI_Finalize();
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int largest_tag() const override { return largest_tag_; }

  std::unique_ptr<Message> send(int to, int tag, std::span<const std::byte> data) override {
    auto message = std::make_unique<MpiMessage>(false);
    MPI_Isend(data.data(), count_of(data.size()), MPI_BYTE, to, tag, ranks_, &message->request());
    return message;
  }
  std::unique_ptr<Message> receive(int from, int tag, std::span<std::byte> data) override {
    auto message = std::make_unique<MpiMessage>(true);
    MPI_Irecv(data.data(), count_of(data.size()), MPI_BYTE, from, tag, ranks_, &message->request());
    return message;
  }
  std::unique_ptr<Message> sum(int channel, std::span<float> values) override {
    auto message = std::make_unique<MpiMessage>(false);
    MPI_Iallreduce(MPI_IN_PLACE, values.data(), count_of(values.size()), MPI_FLOAT, MPI_SUM,
                   channels_.at(static_cast<std::size_t>(channel)), &message->request());
    return message;
  }
  void open_channels(int count) override {
    while (channels_.size() < static_cast<std::size_t>(count))
      MPI_Comm_dup(ranks_, &channels_.emplace_back());
  }
  void end_all(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  MPI_Comm ranks_ = MPI_COMM_NULL;
  // Collective operations of one communicator must start in the same order on all ranks; buckets
  // become ready in any order, so each has a communicator of its own.
  std::vector<MPI_Comm> channels_;
  int rank_ = 0, size_ = 1, largest_tag_ = 32767;
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
    std::string& trouble) {
  regatta::set_defaults();
  int given = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given) != MPI_SUCCESS) {
    trouble = "MPI_Init_thread failed";
    return nullptr;
  }
  if (given < MPI_THREAD_MULTIPLE) {
    trouble = "this MPI does not let several threads call it (MPI_THREAD_MULTIPLE)";
    MPI_Finalize();
    return nullptr;
  }
  return new regatta::MpiTransport();  // NOLINT(cppcoreguidelines-owning-memory): taken over
}
