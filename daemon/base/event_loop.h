// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "daemon/base/clock.h"
#include "daemon/base/fd.h"
#include "daemon/base/result.h"

namespace memsluice {

// One thread waits here for everything: file descriptors, times, signals.
//
// A callback may end any Watch or Timer, its own included. The loop must outlive both.
class EventLoop {
 public:
  using WatchCallback = std::function<void(uint32_t events)>;
  using TimerCallback = std::function<void()>;

  // Watches until it is destroyed. The descriptor stays its owner's, who closes it afterwards.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept { *this = std::move(other); }
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { stop(); }
    void stop();
    // 0: only errors and hang-ups.
    void set_events(uint32_t events);

   private:
    friend class EventLoop;
    Watch(EventLoop* loop, uint64_t id, int fd) : loop_(loop), id_(id), fd_(fd) {}
    EventLoop* loop_ = nullptr;
    uint64_t id_ = 0;
    int fd_ = -1;
  };

  class Timer {
   public:
    Timer() = default;
    Timer(Timer&& other) noexcept { *this = std::move(other); }
    Timer& operator=(Timer&& other) noexcept;
    ~Timer() { stop(); }
    void stop();
    // Will fire.
    bool is_set() const;

   private:
    friend class EventLoop;
    Timer(EventLoop* loop, uint64_t id) : loop_(loop), id_(id) {}
    EventLoop* loop_ = nullptr;
    uint64_t id_ = 0;
  };

  static Result<std::unique_ptr<EventLoop>> create(const Clock& clock);
  ~EventLoop();

  Result<Watch> watch(int fd, uint32_t events, WatchCallback callback);
  Timer once(Milliseconds after, TimerCallback callback);
  Timer every(Milliseconds period, TimerCallback callback);

  // Blocks these signals in this thread and calls back instead. Once for a loop.
  Result<void> catch_signals(std::initializer_list<int> signals,
                             std::function<void(int signal)> callback);

  // Waits for at most this long (and no longer than the next timer), then calls back.
  Result<void> run_once(Milliseconds at_most);
  Result<void> run();
  void stop() { stopped_ = true; }

 private:
  struct Scheduled {
    Milliseconds due;
    Milliseconds period;  // 0: once
    std::shared_ptr<TimerCallback> callback;
  };

  EventLoop(const Clock& clock, Fd epoll) : clock_(clock), epoll_(std::move(epoll)) {}
  Timer schedule(Milliseconds after, Milliseconds period, TimerCallback callback);
  int timeout_ms(Milliseconds at_most) const;
  void run_due_timers();

  const Clock& clock_;
  Fd epoll_;
  Fd signal_fd_;
  Watch signal_watch_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<WatchCallback>> watches_;
  std::map<uint64_t, Scheduled> timers_;
  bool stopped_ = false;
};

}  // namespace memsluice
