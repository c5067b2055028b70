#include "transport/collectives.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace regatta {
namespace {

constexpr int length_tag = 0, text_tag = 1;
// MPI counts bytes of a message in an int.
constexpr std::size_t longest_piece = std::size_t{64} << 20;

std::span<const std::byte> bytes_of(const std::uint64_t& number) {
  return std::as_bytes(std::span(&number, 1));
}

// Waits until the message is done, or the rank at its other end lost. Whether it is done.
bool arrives(Message& message, int rank, const Lost& lost) {
  while (!message.done()) {
    if (lost && lost(rank)) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// MPI buffers a message of one number at once, so that one may lie on the stack. A text may still
// be read after its message was given up, so the transport takes it over then.
void send_text(Transport& transport, int to, const std::string& own, const Lost& lost = {}) {
  const auto copy = lost ? std::make_shared<const std::string>(own) : nullptr;
  const std::string& text = copy ? *copy : own;
  const std::uint64_t length = text.size();
  bool there = arrives(*transport.send(to, length_tag, bytes_of(length)), to, lost);
  for (std::size_t at = 0; there && at < text.size(); at += longest_piece) {
    const std::size_t piece = std::min(longest_piece, text.size() - at);
    there = arrives(
        *transport.send(to, text_tag, std::as_bytes(std::span(text).subspan(at, piece))), to, lost);
  }
  if (!there) transport.leave(copy);
}

std::string receive_text(Transport& transport, int from, const Lost& lost = {}) {
  std::uint64_t length = 0;
  if (!arrives(*transport.receive(from, length_tag, std::as_writable_bytes(std::span(&length, 1))),
               from, lost))
    return "";
  const auto text = std::make_shared<std::string>(length, '\0');
  for (std::size_t at = 0; at < length; at += longest_piece) {
    const std::size_t piece = std::min(longest_piece, length - at);
    if (arrives(*transport.receive(from, text_tag,
                                   std::as_writable_bytes(std::span(*text).subspan(at, piece))),
                from, lost))
      continue;
    transport.leave(text);
    return "";
  }
  return std::move(*text);
}

}  // namespace

std::string text_of_first(Transport& transport, const std::string& own) {
  if (transport.rank() > 0) return receive_text(transport, 0);
  for (int rank = 1; rank < transport.size(); ++rank) send_text(transport, rank, own);
  return own;
}

std::vector<std::string> texts_on_first(Transport& transport, const std::string& own,
                                        const Lost& lost) {
  if (transport.rank() > 0) {
    send_text(transport, 0, own);
    return {};
  }
  std::vector<std::string> texts{own};
  for (int rank = 1; rank < transport.size(); ++rank)
    texts.push_back(receive_text(transport, rank, lost));
  return texts;
}

std::vector<std::string> gather_texts(Transport& transport, const std::string& own,
                                      const Lost& lost) {
  std::vector<std::string> texts = texts_on_first(transport, own, lost);
  texts.resize(static_cast<std::size_t>(transport.size()));
  if (transport.rank() > 0) {
    for (std::string& text : texts) text = receive_text(transport, 0);
    return texts;
  }
  for (int rank = 1; rank < transport.size(); ++rank)
    for (const std::string& text : texts) send_text(transport, rank, text, lost);
  return texts;
}

}  // namespace regatta
