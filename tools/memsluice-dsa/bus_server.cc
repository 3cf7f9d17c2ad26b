// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/bus_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "daemon/base/unix_socket.h"

namespace memsluice::dsa {
namespace {

constexpr Milliseconds kSendTimeout{5000};
constexpr size_t kFilesAtOnce = VfioUser::kFilesMax;

VfioUserHeader header_of(const std::vector<uint8_t>& message) {
  VfioUserHeader header;
  std::memcpy(&header, message.data(), sizeof(header));
  return header;
}

void take_files(msghdr& message, std::vector<Fd>& files) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(control) + i * sizeof(int), sizeof(file));
      files.emplace_back(file);
    }
  }
}

}  // namespace

void BusServer::add_client(Fd client) {
  if (client_.valid()) {
    log_.warning("a second virtual machine is turned away");
    return;
  }
  // Who does not take replies is hung up on; nobody else shall wait for him.
  set_send_timeout(client.get(), kSendTimeout);
  auto watch = loop_.watch(client.get(), EPOLLIN, [this](uint32_t) { read_messages(); });
  if (!watch.ok()) {
    log_.error("{}", watch.error().describe());
    return;
  }
  client_ = std::move(client);
  client_watch_ = *std::move(watch);
  log_.info("a virtual machine has plugged the device in");
}

void BusServer::disconnect() {
  if (!client_.valid()) return;
  client_watch_.stop();
  client_.reset();
  message_.clear();
  files_.clear();
  protocol_.disconnect();
  log_.info("the virtual machine is gone");
}

void BusServer::read_messages() {
  while (client_.valid() && read_some()) {
  }
}

// No more than the message that is on its way: files that come with it belong to it.
bool BusServer::read_some() {
  size_t wanted = sizeof(VfioUserHeader);
  if (message_.size() >= sizeof(VfioUserHeader)) wanted = header_of(message_).size;
  const size_t had = message_.size();
  message_.resize(wanted);
  iovec into = {&message_[had], wanted - had};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFilesAtOnce)> control;
  msghdr header = {};
  header.msg_iov = &into;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(client_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  message_.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got > 0) take_files(header, files_);
  if (got > 0 && files_.size() <= VfioUser::kFilesMax && take_message()) return true;
  disconnect();
  return false;
}

// Return: false when the client is to be hung up on.
bool BusServer::take_message() {
  if (message_.size() < sizeof(VfioUserHeader)) return true;
  const VfioUserHeader header = header_of(message_);
  if (header.size < sizeof(header) || header.size - sizeof(header) > VfioUser::kPayloadMax) {
    log_.warning("a message of {} bytes: hanging up", header.size);
    return false;
  }
  if (message_.size() < header.size) return true;
  const auto reply = protocol_.answer(
      header, std::span<const uint8_t>(message_).subspan(sizeof(header)), std::move(files_));
  message_.clear();
  files_.clear();
  if (!reply) return true;
  const auto* bytes = reinterpret_cast<const char*>(reply->data());
  return send_all(client_.get(), {bytes, reply->size()}).ok();
}

}  // namespace memsluice::dsa
