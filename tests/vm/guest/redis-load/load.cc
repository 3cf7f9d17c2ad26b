// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/guest/redis-load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "daemon/base/units.h"
#include "tests/vm/guest/redis-load/value.h"

namespace memsluice::guest {
namespace {

using Clock = std::chrono::steady_clock;
using Versions = std::vector<uint32_t>;

constexpr std::string_view kShapeKey = "redis-load:shape";
constexpr std::string_view kVersionsKey = "redis-load:versions";
constexpr uint64_t kBatch = 64;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string key_name(uint64_t key) {
  return fmt::format("key:{:012}", key);
}

Result<DataSet> read_shape(Connection& connection) {
  auto reply = connection.command({"GET", kShapeKey});
  if (!reply.ok()) return reply.error();
  const std::string_view text = text_of(**reply);
  const size_t space = text.find(' ');
  const auto keys = parse_number(text.substr(0, space), 1, UINT32_MAX);
  const auto value_bytes =
      parse_number(space == text.npos ? "" : text.substr(space + 1), kMinValueBytes, UINT32_MAX);
  if (!keys.ok() || !value_bytes.ok()) {
    return Error{ErrorCode::kNotFound,
                 std::string(kShapeKey),
                 "no data set in this server",
                 "run redis-load fill first",
                 0,
                 {}};
  }
  return DataSet{*keys, *value_bytes};
}

Result<void> save_versions(Connection& connection, const Versions& versions) {
  const std::string_view bytes(reinterpret_cast<const char*>(versions.data()),
                               versions.size() * sizeof versions[0]);
  auto saved = connection.command({"SET", kVersionsKey, bytes});
  return saved.ok() ? Result<void>() : saved.error();
}

// Nothing, if a run was cut short before it could save them.
Result<std::optional<Versions>> read_versions(Connection& connection, uint64_t keys) {
  auto reply = connection.command({"GET", kVersionsKey});
  if (!reply.ok()) return reply.error();
  Versions versions(keys);
  const std::string_view bytes = text_of(**reply);
  if (bytes.size() != keys * sizeof versions[0]) return std::optional<Versions>();
  std::memcpy(versions.data(), bytes.data(), bytes.size());
  return std::optional<Versions>(std::move(versions));
}

// Counts what is wrong with the reply to a GET whose version must lie in [oldest, newest].
void check_value(const redisReply& reply, uint64_t key, uint64_t oldest, uint64_t newest,
                 std::string& scratch, Errors& errors) {
  if (reply.type == REDIS_REPLY_NIL) {
    ++errors.missing;
  } else if (reply.type != REDIS_REPLY_STRING) {
    ++errors.refused;
  } else {
    const auto version = verify_value(key, text_of(reply), scratch);
    if (!version || *version < oldest || *version > newest) ++errors.wrong;
  }
}

// One connection's share of the load. A key is written by one client only, so its versions are
// in order; they are read by all.
class Client {
 public:
  Client(Connection connection, const RunOptions& options, const DataSet& data, unsigned index)
      : connection_(std::move(connection)),
        options_(options),
        data_(data),
        index_(index),
        random_(options.seed * 1000 + index),
        scratch_(data.value_bytes, '\0') {}

  Result<void> send(const KeyPicker& keys, uint64_t shifts, Versions& issued) {
    requests_.clear();
    for (unsigned i = 0; i < options_.pipeline; ++i) {
      uint64_t key = keys.pick(random_, shifts);
      const bool is_write = random_.below(100) < options_.write_percent;
      if (is_write) key = own_key(key);
      const std::string name = key_name(key);
      if (is_write) {
        make_value(key, ++issued[key], scratch_);
        connection_.append({"SET", name, scratch_});
      } else {
        connection_.append({"GET", name});
      }
      requests_.push_back({key, is_write});
    }
    sent_ = Clock::now();
    return connection_.flush();
  }

  // `acknowledged` are the versions known to be in the server when the requests were sent.
  Result<void> receive(const Versions& acknowledged, const Versions& issued, RunReport& report) {
    for (const Request& request : requests_) {
      auto reply = connection_.receive();
      if (!reply.ok()) return reply.error();
      report.latency.add(
          static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - sent_).count()));
      if (request.is_write) {
        ++report.writes;
        if ((*reply)->type == REDIS_REPLY_ERROR) ++report.errors.refused;
      } else {
        ++report.reads;
        check_value(**reply, request.key, acknowledged[request.key], issued[request.key], scratch_,
                    report.errors);
      }
    }
    return {};
  }

  void acknowledge(const Versions& issued, Versions& acknowledged) const {
    for (const Request& request : requests_) {
      if (request.is_write) acknowledged[request.key] = issued[request.key];
    }
  }

 private:
  struct Request {
    uint64_t key;
    bool is_write;
  };

  // The nearest key that is this client's to write.
  uint64_t own_key(uint64_t key) const {
    const uint64_t own = key - key % options_.clients + index_;
    return own < data_.keys ? own : index_;
  }

  Connection connection_;
  const RunOptions& options_;
  const DataSet& data_;
  const unsigned index_;
  Random random_;
  std::string scratch_;
  std::vector<Request> requests_;
  Clock::time_point sent_;
};

Result<std::vector<Client>> connect_clients(const Server& server, const RunOptions& options,
                                            const DataSet& data) {
  std::vector<Client> clients;
  for (unsigned i = 0; i < options.clients; ++i) {
    auto connection = Connection::open(server);
    if (!connection.ok()) return connection.error();
    clients.emplace_back(std::move(connection).value(), options, data, i);
  }
  return clients;
}

// Rounds: all clients send, then all receive. The server sees them at the same time.
Result<RunReport> run_rounds(std::vector<Client>& clients, const RunOptions& options,
                             const KeyPicker& keys, Versions& versions) {
  RunReport report;
  Versions issued = versions;
  const Clock::time_point start = Clock::now();
  double second_started = 0;
  uint64_t requests_before = 0;
  while ((report.seconds = seconds_since(start)) < options.seconds) {
    if (report.seconds - second_started >= 1) {
      const uint64_t requests = report.reads + report.writes;
      report.requests_per_second.push_back(static_cast<double>(requests - requests_before) /
                                           (report.seconds - second_started));
      second_started = report.seconds;
      requests_before = requests;
    }
    const uint64_t shifts =
        options.first_shift +
        (options.shift_every_seconds > 0
             ? static_cast<uint64_t>(report.seconds / options.shift_every_seconds)
             : 0);
    for (Client& client : clients) {
      if (auto sent = client.send(keys, shifts, issued); !sent.ok()) return sent.error();
    }
    for (Client& client : clients) {
      auto received = client.receive(versions, issued, report);
      if (!received.ok()) return received.error();
    }
    for (const Client& client : clients) client.acknowledge(issued, versions);
  }
  return report;
}

}  // namespace

Result<void> fill(const Server& server, const DataSet& data) {
  auto connection = Connection::open(server);
  if (!connection.ok()) return connection.error();
  std::string value(data.value_bytes, '\0');
  for (uint64_t first = 0; first < data.keys; first += kBatch) {
    const uint64_t end = std::min(first + kBatch, data.keys);
    for (uint64_t key = first; key < end; ++key) {
      make_value(key, 0, value);
      connection->append({"SET", key_name(key), value});
    }
    for (uint64_t key = first; key < end; ++key) {
      auto reply = connection->receive();
      if (!reply.ok()) return reply.error();
      if ((*reply)->type == REDIS_REPLY_ERROR) {
        return Error{ErrorCode::kFailed, key_name(key), std::string(text_of(**reply)), {}, 0, {}};
      }
    }
  }
  if (auto saved = save_versions(*connection, Versions(data.keys)); !saved.ok()) return saved;
  auto shaped =
      connection->command({"SET", kShapeKey, fmt::format("{} {}", data.keys, data.value_bytes)});
  return shaped.ok() ? Result<void>() : shaped.error();
}

Result<RunReport> run(const Server& server, const RunOptions& options) {
  auto connection = Connection::open(server);
  if (!connection.ok()) return connection.error();
  const auto data = read_shape(*connection);
  if (!data.ok()) return data.error();
  if (data->keys < options.clients) {
    return Error{ErrorCode::kBadRequest, "--clients", "more than there are keys", {}, 0, {}};
  }
  auto versions = read_versions(*connection, data->keys);
  if (!versions.ok()) return versions.error();
  if (!*versions) {
    return Error{ErrorCode::kConflict,
                 server.name(),
                 "another run is under way or was cut short",
                 "run redis-load fill again",
                 0,
                 {}};
  }
  if (auto deleted = connection->command({"DEL", kVersionsKey}); !deleted.ok()) {
    return deleted.error();
  }
  auto clients = connect_clients(server, options, *data);
  if (!clients.ok()) return clients.error();
  const KeyPicker keys(options.skew, data->keys, options.scatter);
  auto report = run_rounds(*clients, options, keys, **versions);
  if (!report.ok()) return report;
  if (auto saved = save_versions(*connection, **versions); !saved.ok()) return saved.error();
  return report;
}

Result<VerifyReport> verify(const Server& server) {
  auto connection = Connection::open(server);
  if (!connection.ok()) return connection.error();
  const auto data = read_shape(*connection);
  if (!data.ok()) return data.error();
  const auto versions = read_versions(*connection, data->keys);
  if (!versions.ok()) return versions.error();
  VerifyReport report{data->keys, versions->has_value(), {}};
  std::string scratch(data->value_bytes, '\0');
  for (uint64_t first = 0; first < data->keys; first += kBatch) {
    const uint64_t end = std::min(first + kBatch, data->keys);
    for (uint64_t key = first; key < end; ++key) connection->append({"GET", key_name(key)});
    for (uint64_t key = first; key < end; ++key) {
      auto reply = connection->receive();
      if (!reply.ok()) return reply.error();
      const uint64_t oldest = report.versions_known ? (**versions)[key] : 0;
      const uint64_t newest = report.versions_known ? oldest : UINT64_MAX;
      check_value(**reply, key, oldest, newest, scratch, report.errors);
    }
  }
  return report;
}

}  // namespace memsluice::guest
