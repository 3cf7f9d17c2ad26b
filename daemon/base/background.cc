// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/background.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace memsluice {
namespace {

// Signals are for the loop's thread, whatever is blocked there.
Result<std::thread> start_without_signals(std::function<void()> work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<std::thread> thread = Error{};
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error& error) {
    thread = errno_error(error.code().value(), "pthread_create", {});
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Result<std::unique_ptr<Background>> Background::create(EventLoop& loop) {
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) return errno_error(errno, "eventfd", {});
  std::unique_ptr<Background> background(new Background(std::move(event)));
  auto watch = loop.watch(background->ended_event_.get(), EPOLLIN,
                          [self = background.get()](uint32_t) { self->on_ended(); });
  if (!watch.ok()) return std::move(watch).error();
  background->watch_ = *std::move(watch);
  return background;
}

Background::~Background() {
  for (auto& [id, job] : jobs_) job.thread.join();
}

Result<void> Background::start(std::function<void()> work, std::function<void()> done) {
  if (jobs_.size() >= kRunningMax)
    return Error{.code = ErrorCode::kConflict,
                 .message = fmt::format("{} such calls are under way", kRunningMax),
                 .hint = "wait for one to end"};
  const uint64_t id = next_id_++;
  auto thread = start_without_signals([this, id, work = std::move(work)] {
    work();
    const std::lock_guard guard(lock_);
    ended_.push_back(id);
    ::eventfd_write(ended_event_.get(), 1);
  });
  if (!thread.ok()) return std::move(thread).error();
  jobs_.emplace(id, Job{*std::move(thread), std::move(done)});
  return {};
}

void Background::on_ended() {
  eventfd_t count = 0;
  ::eventfd_read(ended_event_.get(), &count);
  std::vector<uint64_t> ended;
  {
    const std::lock_guard guard(lock_);
    ended.swap(ended_);
  }
  for (const uint64_t id : ended) {
    auto node = jobs_.extract(id);
    node.mapped().thread.join();
    node.mapped().done();
  }
}

}  // namespace memsluice
