// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/channel.h"

#include <condition_variable>
#include <mutex>
#include <ostream>
#include <thread>

#include "tools/memsluice/fields.h"
#include "tools/memsluice/render.h"

namespace memsluice {
namespace {

constexpr Milliseconds kLookEvery{500};
// Beyond the deadline: what was taken away is brought back.
constexpr Milliseconds kUndoing{60000};

// Looks at a channel from time to time, by a connection of its own: the other one waits.
class Watch {
 public:
  Watch(std::string name, const Environment& environment)
      : name_(std::move(name)), environment_(environment) {
    if (environment_.err_is_terminal) thread_ = std::thread([this] { look_until_done(); });
  }
  ~Watch() {
    {
      const std::lock_guard guard(lock_);
      done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (shown_) environment_.err << kClearLine << std::flush;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void look_until_done() {
    auto client = Client::connect(environment_.client);
    std::unique_lock guard(lock_);
    while (client.ok() && !changed_.wait_for(guard, kLookEvery, [this] { return done_; }))
      look(*client);
  }

  void look(Client& client) {
    auto result = client.call("channel.list");
    if (!result.ok()) return;
    for (const Json& channel : items(*result, "channels")) {
      if (text(channel, "name") != name_ || text(channel, "state") != "removing") continue;
      environment_.err << kClearLine
                       << channel_progress_line(channel, environment_.columns - 1,
                                                environment_.page_bytes)
                       << std::flush;
      shown_ = true;
    }
  }

  const std::string name_;
  const Environment& environment_;
  std::mutex lock_;
  std::condition_variable changed_;
  bool done_ = false;
  bool shown_ = false;
  std::thread thread_;
};

}  // namespace

Result<int> run_channel_remove(const ChannelRemoveCommand& command, bool json,
                               const Environment& environment) {
  const Milliseconds deadline(number(command.params, "deadline_ms").value_or(0));
  auto client = Client::connect(environment.client.with_patience(deadline + kUndoing));
  if (!client.ok()) return client.error();
  Result<Json> result = Json();
  {
    const Watch watch(text(command.params, "name"), environment);
    result = client->call("channel.remove", command.params);
  }
  if (!result.ok()) return result.error();
  environment.out << (json ? to_line(*result)
                           : render_result("channel.remove", command.params, *result,
                                           environment.page_bytes));
  return 0;
}

}  // namespace memsluice
