// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/event_loop.h"

#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

namespace memsluice {

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept {
  if (this == &other) return *this;
  stop();
  loop_ = std::exchange(other.loop_, nullptr);
  id_ = other.id_;
  fd_ = other.fd_;
  return *this;
}

void EventLoop::Watch::stop() {
  EventLoop* loop = std::exchange(loop_, nullptr);
  if (loop == nullptr) return;
  ::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_DEL, fd_, nullptr);
  loop->watches_.erase(id_);
}

void EventLoop::Watch::set_events(uint32_t events) {
  if (loop_ == nullptr) return;
  epoll_event event{.events = events, .data = {.u64 = id_}};
  ::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_MOD, fd_, &event);
}

EventLoop::Timer& EventLoop::Timer::operator=(Timer&& other) noexcept {
  if (this == &other) return *this;
  stop();
  loop_ = std::exchange(other.loop_, nullptr);
  id_ = other.id_;
  return *this;
}

void EventLoop::Timer::stop() {
  if (EventLoop* loop = std::exchange(loop_, nullptr)) loop->timers_.erase(id_);
}

bool EventLoop::Timer::is_set() const {
  return loop_ != nullptr && loop_->timers_.contains(id_);
}

Result<std::unique_ptr<EventLoop>> EventLoop::create(const Clock& clock) {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return errno_error(errno, "epoll_create1", {});
  return std::unique_ptr<EventLoop>(new EventLoop(clock, std::move(epoll)));
}

EventLoop::~EventLoop() = default;

Result<EventLoop::Watch> EventLoop::watch(int fd, uint32_t events, WatchCallback callback) {
  uint64_t id = next_id_++;
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return errno_error(errno, "epoll_ctl", {});
  watches_.emplace(id, std::make_shared<WatchCallback>(std::move(callback)));
  return Watch(this, id, fd);
}

EventLoop::Timer EventLoop::once(Milliseconds after, TimerCallback callback) {
  return schedule(after, Milliseconds(0), std::move(callback));
}

EventLoop::Timer EventLoop::every(Milliseconds period, TimerCallback callback) {
  return schedule(period, period, std::move(callback));
}

EventLoop::Timer EventLoop::schedule(Milliseconds after, Milliseconds period,
                                     TimerCallback callback) {
  uint64_t id = next_id_++;
  timers_.emplace(id, Scheduled{clock_.monotonic() + after, period,
                                std::make_shared<TimerCallback>(std::move(callback))});
  return Timer(this, id);
}

Result<void> EventLoop::catch_signals(std::initializer_list<int> signals,
                                      std::function<void(int)> callback) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  if (int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0)
    return errno_error(error, "pthread_sigmask", {});
  signal_fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd_.valid()) return errno_error(errno, "signalfd", {});

  auto read_signals = [this, callback = std::move(callback)](uint32_t) {
    signalfd_siginfo info;
    while (::read(signal_fd_.get(), &info, sizeof(info)) == sizeof(info))
      callback(static_cast<int>(info.ssi_signo));
  };
  auto watching = watch(signal_fd_.get(), EPOLLIN, std::move(read_signals));
  if (!watching.ok()) return std::move(watching).error();
  signal_watch_ = *std::move(watching);
  return {};
}

int EventLoop::timeout_ms(Milliseconds at_most) const {
  Milliseconds timeout = at_most;
  const Milliseconds now = clock_.monotonic();
  for (const auto& [id, timer] : timers_)
    timeout = std::min(timeout, std::max(timer.due - now, Milliseconds(0)));
  return static_cast<int>(timeout.count());
}

Result<void> EventLoop::run_once(Milliseconds at_most) {
  std::array<epoll_event, 64> events;
  int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms(at_most));
  if (count < 0 && errno != EINTR) return errno_error(errno, "epoll_wait", {});
  for (int i = 0; i < count; i++) {
    // An earlier callback of this round may have ended this watch.
    // By value: the structure is packed, and a reference to its member would not be aligned.
    const uint64_t id = events[i].data.u64;
    auto found = watches_.find(id);
    if (found == watches_.end()) continue;
    std::shared_ptr<WatchCallback> callback = found->second;
    (*callback)(events[i].events);
  }
  run_due_timers();
  return {};
}

void EventLoop::run_due_timers() {
  const Milliseconds now = clock_.monotonic();
  std::vector<uint64_t> due;
  for (const auto& [id, timer] : timers_)
    if (timer.due <= now) due.push_back(id);
  for (uint64_t id : due) {
    auto found = timers_.find(id);
    if (found == timers_.end()) continue;
    std::shared_ptr<TimerCallback> callback = found->second.callback;
    if (found->second.period.count() == 0) {
      timers_.erase(found);
    } else {
      // From now on: a loop that was held up does not catch up in a burst.
      found->second.due = now + found->second.period;
    }
    (*callback)();
  }
}

Result<void> EventLoop::run() {
  for (stopped_ = false; !stopped_;) {
    auto done = run_once(std::chrono::hours(1));
    if (!done.ok()) return done;
  }
  return {};
}

}  // namespace memsluice
