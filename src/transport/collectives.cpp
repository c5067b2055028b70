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

void send_text(Transport& transport, int to, const std::string& text) {
  const std::uint64_t length = text.size();
  wait_for(*transport.send(to, length_tag, bytes_of(length)));
  for (std::size_t at = 0; at < text.size(); at += longest_piece)
    wait_for(*transport.send(
        to, text_tag,
        std::as_bytes(std::span(text).subspan(at, std::min(longest_piece, text.size() - at)))));
}

std::string receive_text(Transport& transport, int from) {
  std::uint64_t length = 0;
  wait_for(*transport.receive(from, length_tag, std::as_writable_bytes(std::span(&length, 1))));
  std::string text(length, '\0');
  for (std::size_t at = 0; at < text.size(); at += longest_piece)
    wait_for(*transport.receive(from, text_tag,
                                std::as_writable_bytes(std::span(text).subspan(
                                    at, std::min(longest_piece, text.size() - at)))));
  return text;
}

}  // namespace

void wait_for(Message& message) {
  while (!message.done()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

std::string text_of_first(Transport& transport, const std::string& own) {
  if (transport.rank() > 0) return receive_text(transport, 0);
  for (int rank = 1; rank < transport.size(); ++rank) send_text(transport, rank, own);
  return own;
}

std::vector<std::string> texts_on_first(Transport& transport, const std::string& own) {
  if (transport.rank() > 0) {
    send_text(transport, 0, own);
    return {};
  }
  std::vector<std::string> texts{own};
  for (int rank = 1; rank < transport.size(); ++rank)
    texts.push_back(receive_text(transport, rank));
  return texts;
}

std::vector<std::string> gather_texts(Transport& transport, const std::string& own) {
  std::vector<std::string> texts(static_cast<std::size_t>(transport.size()));
  if (transport.rank() > 0) {
    send_text(transport, 0, own);
    for (std::string& text : texts) text = receive_text(transport, 0);
    return texts;
  }
  texts[0] = own;
  for (int rank = 1; rank < transport.size(); ++rank)
    texts[static_cast<std::size_t>(rank)] = receive_text(transport, rank);
  for (int rank = 1; rank < transport.size(); ++rank)
    for (const std::string& text : texts) send_text(transport, rank, text);
  return texts;
}

}  // namespace regatta
