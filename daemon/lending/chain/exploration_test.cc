// SPDX-License-Identifier: GPL-2.0
// Alloc and Free themselves, interpreted, in every order that a NIC, the tenants and the CPU of the
// memory node can bring about, with a tenant lost at each step; and in some orders for long.
#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

#include "daemon/lending/chain/alloc_free.h"
#include "daemon/lending/chain/interpreter.h"

namespace memsluice::chain {
namespace {

constexpr uint32_t kTenants = 2, kAllocQueues = 2, kNobody = 99;
constexpr uint64_t kBase = uint64_t{1} << 32;

struct Scenario {
  Mode mode = Mode::kRings;
  uint32_t chunks = 3;
  uint32_t instances = 2;
  uint32_t asks = 1;      // of each Alloc queue
  uint32_t frees = 1;     // of each tenant
  bool bad_free = false;  // tenant 1 frees chunk 0 first
  bool empty = false;     // tenant 1's second ring has nothing
};

class World {
 public:
  explicit World(const Scenario& scenario)
      : scenario_(scenario),
        shape_{.windows = 2,
               .mode = scenario.mode,
               .instances = scenario.instances,
               .entries = scenario.chunks,
               .alloc_queues = kAllocQueues,
               .chunk_bytes = 64},
        machine_(kBase, 0) {
    records_ = take(uint64_t{kRecordBytes} * shape_.entries);
    entries_ = take(uint64_t{entry_bytes(shape_)} * (shape_.entries + 1));
    owners_ = take(uint64_t{8} * shape_.entries);
    head_ = take(8);
    std::vector<std::pair<std::shared_ptr<const Program>, std::shared_ptr<const Bindings>>> chains;
    const auto alloc = std::make_shared<const Program>(alloc_program(shape_));
    const auto free = std::make_shared<const Program>(free_program(shape_));
    for (uint32_t tenant = 0; tenant < kTenants; tenant++) {
      constants_[tenant] = take(kConstantBytes);
      credits_[tenant] = take(uint64_t{8} * kAllocQueues);
      chains.emplace_back(free, bind(*free, tenant, 0));
      returns_[tenant] = chains.back().second->buffers.at("returns").address;
      for (uint32_t i = 0; i < kAllocQueues; i++) {
        chains.emplace_back(alloc, bind(*alloc, tenant, 1 + i));
        Client& client = clients_[tenant][i];
        const auto& buffers = chains.back().second->buffers;
        client.credits = buffers.at("credits").address;
        if (scenario.mode == Mode::kRings) client.ring = buffers.at("ring").address;
      }
    }
    queue_ = (kBase + used_ + 0xFFFF) & ~uint64_t{0xFFFF};
    machine_ = Interpreter(kBase, scenario.mode == Mode::kRings ? used_ : queue_ - kBase + 8 * 64);
    for (auto& [program, bindings] : chains) {
      auto with_queue = std::make_shared<Bindings>(*bindings);
      with_queue->buffers["queue"] = {queue_, 0};
      machine_.add(program, with_queue, shape_.instances);
    }
    prepare();
  }

  // What can happen next. A number for choose().
  std::vector<uint32_t> choices() const {
    std::vector<uint32_t> all = machine_.runnable();
    for (uint32_t tenant = 0; tenant < kTenants; tenant++) {
      if (lost_[tenant]) continue;
      for (uint32_t i = 0; i < kAllocQueues; i++)
        if (can_ask(tenant, i)) all.push_back(kAsk + tenant * 10 + i);
      if (to_free(tenant) != kNobody) all.push_back(kFree + tenant);
      if (returned(tenant)) all.push_back(kRefill + tenant);
    }
    return all;
  }

  void choose(uint32_t choice) {
    if (choice >= kRefill)
      refill(choice - kRefill);
    else if (choice >= kFree)
      ask_to_free(choice - kFree);
    else if (choice >= kAsk)
      ask((choice - kAsk) / 10, (choice - kAsk) % 10);
    else
      advance(choice);
    run_private();
  }

  // What the audit has to find after @tenant is lost now: on a copy.
  void lose(uint32_t tenant) {
    lost_[tenant] = true;
    for (uint32_t role = 0; role <= kAllocQueues; role++) machine_.stop(number(tenant, role, 0));
    for (uint32_t turn = 0; turn < 10000; turn++) {
      std::vector<uint32_t> next = choices();
      std::erase_if(next, [](uint32_t choice) { return choice >= kRefill; });
      if (next.empty()) break;
      choose(next.front());
    }
    audit(tenant);
  }

  const std::string& wrong() const { return wrong_; }
  uint64_t hash() const {
    uint64_t hash = machine_.hash();
    const auto mix = [&](uint64_t value) {
      hash = (hash ^ value) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 31;
    };
    for (uint32_t tenant = 0; tenant < kTenants; tenant++) {
      mix(frees_[tenant] << 8 | freed_[tenant] << 4 | seen_[tenant] << 1 | failed_[tenant]);
      for (const Client& client : clients_[tenant]) mix(client.asked << 8 | client.answered);
    }
    for (uint32_t chunk = 0; chunk < shape_.entries; chunk++)
      mix(holder_[chunk] << 16 | granted_[chunk] << 8 | freeing_[chunk]);
    return hash;
  }
  // Everybody who is left has what he asked for.
  void expect_answers() {
    for (uint32_t tenant = 0; tenant < kTenants; tenant++) {
      if (lost_[tenant] || failed_[tenant]) continue;
      for (const Client& client : clients_[tenant])
        if (client.asked != client.answered) fail("a tenant waits for another");
      if (frees_[tenant] != freed_[tenant]) fail("a free waits for another tenant");
    }
  }

 private:
  static constexpr uint32_t kAsk = 10000, kFree = 20000, kRefill = 30000;
  struct Client {
    uint64_t ring = 0, credits = 0;
    uint32_t published = 0, asked = 0, answered = 0;
  };

  static uint32_t number(uint32_t tenant, uint32_t role, uint32_t queue) {
    return tenant * 100 + role * 10 + queue;
  }
  static uint32_t access_queue(uint32_t tenant) { return tenant * 100 + 90; }

  uint64_t take(uint64_t bytes) {
    const uint64_t address = kBase + used_;
    used_ += (bytes + 7) & ~uint64_t{7};
    return address;
  }

  std::shared_ptr<const Bindings> bind(const Program& program, uint32_t tenant, uint32_t role) {
    auto bindings = std::make_shared<Bindings>();
    for (uint32_t i = 0; i < program.queues.size(); i++)
      bindings->queues[program.queues[i].name] =
          static_cast<nic::QueuePair>(number(tenant, role, i));
    for (const Buffer& buffer : program.buffers) {
      uint64_t address = 0;
      if (buffer.name == "entries") address = entries_;
      if (buffer.name == "owners") address = owners_;
      if (buffer.name == "records") address = records_;
      if (buffer.name == "head") address = head_;
      if (buffer.name == "constants") address = constants_[tenant];
      if (buffer.name == "credits") address = credits_[tenant] + (role ? 8 * (role - 1) : 0);
      if (address == 0 && buffer.name != "queue") address = take(buffer.bytes);
      bindings->buffers[buffer.name] = {address, 0};
    }
    bindings->symbols = {{"region_key", 0},
                         {"chunk_bytes", shape_.chunk_bytes},
                         {"alloc", number(tenant, role, 0)},
                         {"window0", number(tenant, 0, 0)},
                         {"window1", access_queue(tenant)}};
    return bindings;
  }

  void prepare() {
    const uint64_t empty = entries_ + uint64_t{entry_bytes(shape_)} * shape_.entries;
    machine_.write(empty, encode_empty_entry(shape_, empty));
    for (uint32_t tenant = 0; tenant < kTenants; tenant++) {
      machine_.write(constants_[tenant], encode_constants(tenant));
      for (Client& client : clients_[tenant]) {
        machine_.set_word(client.credits, 1);
        for (uint32_t i = 0; client.ring && i < shape_.instances; i++)
          machine_.set_word(client.ring + 8 * i, empty);
      }
    }
    machine_.set_word(head_, queue_ << 48);
    for (uint32_t chunk = 0; chunk < shape_.entries; chunk++) {
      holder_.push_back(kNobody);
      granted_.push_back(kNobody);
      freeing_.push_back(0);
      groups_.push_back({.id = chunk,
                         .address = 64 * (chunk + 1),
                         .keys = {(2 * chunk + 1) << 8, (2 * chunk + 2) << 8},
                         .new_tags = {0, 0},
                         .owner_address = owners_ + 8 * chunk});
      for (uint32_t key : groups_.back().keys) machine_.add_window(key);
    }
    for (uint32_t chunk = 0; chunk < shape_.entries; chunk++)
      grant(chunk % 4 / 2, chunk % 2, chunk, true);
    if (scenario_.empty) allow(clients_[1][1], number(1, 2, 0));
  }

  void allow(Client& client, uint32_t queue) {
    const uint64_t next = machine_.word(client.credits);
    machine_.set_word(client.credits, next + 1);
    machine_.allow_receives(queue, static_cast<uint32_t>(next));
  }

  void grant(uint32_t tenant, uint32_t alloc, uint32_t chunk, bool allows) {
    Client& client = clients_[tenant][alloc];
    Group& group = groups_[chunk];
    for (uint8_t& tag : group.new_tags) tag++;
    group.credit_address = client.credits;
    group.alloc_queue = number(tenant, 1 + alloc, 0);
    const uint64_t entry = entries_ + uint64_t{entry_bytes(shape_)} * chunk;
    machine_.write(records_ + uint64_t{kRecordBytes} * chunk, encode_record(shape_, group));
    machine_.write(entry, encode_entry(shape_, group, entry));
    for (uint32_t window = 0; window < 2; window++)
      group.keys[window] = (group.keys[window] & ~nic::kTagMask) | group.new_tags[window];
    if (scenario_.mode == Mode::kRings) {
      granted_[chunk] = tenant;
      if (client.published < shape_.instances)
        machine_.set_word(client.ring + 8 * client.published++, entry);
    } else {
      machine_.set_word(queue_ + 8 * shared_published_++, entry);
    }
    if (allows) allow(client, group.alloc_queue);
  }

  bool can_ask(uint32_t tenant, uint32_t i) const {
    return clients_[tenant][i].asked < scenario_.asks &&
           clients_[tenant][i].asked == clients_[tenant][i].answered &&
           machine_.can_send(number(tenant, 1 + i, 0));  // the client counts what it may ask for
  }
  void ask(uint32_t tenant, uint32_t i) {
    Client& client = clients_[tenant][i];
    std::array<std::byte, kRequestBytes> message = {};
    if (!machine_.send(number(tenant, 1 + i, 0), message)) return fail("a request has no receive");
    client.asked++;
  }

  uint32_t to_free(uint32_t tenant) const {
    if (frees_[tenant] != freed_[tenant] || frees_[tenant] >= scenario_.frees || failed_[tenant])
      return kNobody;
    if (scenario_.bad_free && tenant == 1 && frees_[1] == 0) return 0;
    for (uint32_t chunk = 0; chunk < shape_.entries; chunk++)
      if (holder_[chunk] == tenant) return chunk;
    return kNobody;
  }
  void ask_to_free(uint32_t tenant) {
    const uint32_t chunk = to_free(tenant);
    std::array<std::byte, kFreeRequestBytes> message = {};
    message[8] = static_cast<std::byte>(chunk);
    if (!machine_.send(number(tenant, 0, 0), message)) return fail("a free has no receive");
    frees_[tenant]++;
    if (holder_[chunk] == tenant) {
      holder_[chunk] = kNobody;  // from here on it does not touch it
      freeing_[chunk] = 1;
    }
  }

  bool returned(uint32_t tenant) const {
    return seen_[tenant] < shape_.instances &&
           machine_.word(returns_[tenant] + 8 * seen_[tenant]) != 0;
  }
  void refill(uint32_t tenant) {
    const auto chunk =
        static_cast<uint32_t>(machine_.word(returns_[tenant] + 8 * seen_[tenant]++) - 1);
    if (chunk >= shape_.entries) return fail("what came back is no chunk");
    if (holder_[chunk] != kNobody) fail("a chunk that somebody holds came back");
    for (uint32_t key : groups_[chunk].keys)
      if (machine_.windows()[key >> 8].bound) fail("a chunk came back with a window bound");
    if (state_of(machine_.word(groups_[chunk].owner_address)) != ChunkState::kDirty)
      fail("a chunk came back that is not dirty");
    freeing_[chunk] = 0;
    machine_.set_word(groups_[chunk].owner_address, owner_word(ChunkState::kFree, 0));
    grant(tenant, chunk % 2, chunk, scenario_.mode == Mode::kSharedQueue);
  }

  void advance(uint32_t queue) {
    const Interpreter::Step done = machine_.step(queue);
    const uint32_t tenant = queue / 100;
    switch (done.effect) {
      case Interpreter::Effect::kBind:
        check_bind(done.key, done.queue);
        break;
      case Interpreter::Effect::kReply:
        answer(tenant, queue, done.message);
        break;
      case Interpreter::Effect::kRefused:
        refused(tenant);
        break;
      default:
        break;
    }
  }
  void run_private() {
    for (bool again = true; again;) {
      again = false;
      for (uint32_t queue : machine_.runnable())
        if (machine_.next_is_private(queue)) {
          advance(queue);
          again = true;
        }
    }
  }

  void refused(uint32_t tenant) {
    if (!(scenario_.bad_free && tenant == 1)) fail("a good chain was refused");
    failed_[tenant] = true;
  }

  void check_bind(uint32_t key, uint32_t queue) {
    const uint32_t chunk = ((key >> 8) - 1) / 2;
    const uint32_t tenant = queue / 100;
    const uint64_t owner = machine_.word(groups_[chunk].owner_address);
    if (owner != owner_word(ChunkState::kOwned, tenant))
      fail("bound before its owner was recorded");
    for (uint32_t window : groups_[chunk].keys) {
      const Interpreter::Window& other = machine_.windows()[window >> 8];
      if (other.bound && other.queue / 100 != tenant) fail("a chunk in two hands");
    }
  }

  void answer(uint32_t tenant, uint32_t queue, const std::vector<std::byte>& message) {
    if (queue % 100 / 10 == 0) {
      freed_[tenant]++;
      return;
    }
    clients_[tenant][queue % 100 / 10 - 1].answered++;
    const Reply reply = decode_reply(shape_, message);
    if (reply.group == kNoGroup) return;
    if (reply.group >= shape_.entries || holder_[reply.group] != kNobody)
      return fail("a chunk was given that somebody holds");
    holder_[reply.group] = tenant;
    const Interpreter::Window& window = machine_.windows()[reply.keys[0] >> 8];
    if (!window.bound || window.queue != access_queue(tenant) ||
        window.tag != (reply.keys[0] & nic::kTagMask))
      fail("a key was given that does not work");
  }

  // Each chunk is found in exactly one place: with a tenant that is left, on its way back, in a
  // ring or in the queue, or it was the lost one's. The last are taken back.
  void audit(uint32_t lost) {
    const uint64_t popped = ((machine_.word(head_) - (queue_ << 48)) >> 48) / kSlotBytes;
    for (uint32_t chunk = 0; chunk < shape_.entries; chunk++) {
      const uint64_t owner = machine_.word(groups_[chunk].owner_address);
      const bool recorded = state_of(owner) != ChunkState::kFree;
      bool reclaimed = recorded && tenant_of(owner) == lost;
      if (scenario_.mode == Mode::kRings) {
        reclaimed = granted_[chunk] == lost;
        if (recorded && tenant_of(owner) != granted_[chunk])
          fail("the owner is not whom it was granted to");
      } else if (!recorded) {
        // The living have come to rest: what has been popped without an owner was the lost one's.
        bool in_queue = false;
        const uint64_t entry = entries_ + uint64_t{entry_bytes(shape_)} * chunk;
        for (uint64_t slot = popped; slot < shared_published_; slot++)
          in_queue |= machine_.word(queue_ + 8 * slot) == entry;
        reclaimed = !in_queue;
      }
      if (reclaimed && holder_[chunk] != kNobody && holder_[chunk] != lost)
        fail("the audit takes what another tenant holds");
      if (!reclaimed && holder_[chunk] == lost) fail("the audit misses what the lost one holds");
      for (uint32_t key : groups_[chunk].keys) {
        const Interpreter::Window& window = machine_.windows()[key >> 8];
        if (window.bound && window.queue / 100 == lost && !reclaimed)
          fail("a window of the lost one stays bound");
      }
    }
    expect_answers();
  }

  void fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  Scenario scenario_;
  Shape shape_;
  uint64_t used_ = 0;
  Interpreter machine_;
  uint64_t records_ = 0, entries_ = 0, owners_ = 0, head_ = 0, queue_ = 0;
  std::array<uint64_t, kTenants> constants_ = {}, credits_ = {}, returns_ = {};
  std::array<std::array<Client, kAllocQueues>, kTenants> clients_ = {};
  std::array<uint32_t, kTenants> frees_ = {}, freed_ = {}, seen_ = {};
  std::array<bool, kTenants> lost_ = {}, failed_ = {};
  std::vector<Group> groups_;
  std::vector<uint32_t> holder_, granted_, freeing_;
  uint64_t shared_published_ = 0;
  std::string wrong_;
};

struct Explored {
  size_t states = 0;
  std::string wrong;
};

// Every state that can be reached, once.
Explored explore(const Scenario& scenario) {
  std::unordered_set<uint64_t> seen;
  std::vector<World> todo = {World(scenario)};
  while (!todo.empty()) {
    const World world = std::move(todo.back());
    todo.pop_back();
    if (!world.wrong().empty()) return {seen.size(), world.wrong()};
    if (!seen.insert(world.hash()).second) continue;
    for (uint32_t tenant = 0; tenant < kTenants; tenant++) {
      World without = world;
      without.lose(tenant);
      if (!without.wrong().empty()) return {seen.size(), without.wrong()};
    }
    const std::vector<uint32_t> choices = world.choices();
    for (uint32_t choice : choices) {
      World next = world;
      next.choose(choice);
      todo.push_back(std::move(next));
    }
    if (!choices.empty()) continue;
    World last = world;
    last.expect_answers();
    if (!last.wrong().empty()) return {seen.size(), last.wrong()};
  }
  return {seen.size(), {}};
}

void expect_good(const Scenario& scenario) {
  const Explored explored = explore(scenario);
  EXPECT_EQ(explored.wrong, "") << "after " << explored.states << " states";
  EXPECT_GT(explored.states, 100U);
  testing::Test::RecordProperty("states", static_cast<int>(explored.states));
  std::printf("[ states   ] %zu\n", explored.states);
}

TEST(Exploration, RingsInEveryOrder) {
  expect_good({});
}
TEST(Exploration, ABadFreeInEveryOrder) {
  expect_good({.bad_free = true});
}
TEST(Exploration, AnEmptyRingInEveryOrder) {
  expect_good({.empty = true});
}
TEST(Exploration, ASharedQueueInEveryOrder) {
  expect_good({.mode = Mode::kSharedQueue});
}

TEST(Exploration, ManyRandomOrders) {
  for (Mode mode : {Mode::kRings, Mode::kSharedQueue})
    for (uint64_t seed = 1; seed <= 20; seed++) {
      World world({.mode = mode, .chunks = 4, .instances = 24, .asks = 20, .frees = 20});
      std::mt19937_64 random(seed);
      for (int turn = 0; turn < 4000; turn++) {
        const std::vector<uint32_t> choices = world.choices();
        if (choices.empty()) break;
        world.choose(choices[random() % choices.size()]);
        if (turn % 50 != 0) continue;
        World without = world;
        without.lose(static_cast<uint32_t>(random() % kTenants));
        ASSERT_EQ(without.wrong(), "") << "seed " << seed << ", turn " << turn;
      }
      ASSERT_EQ(world.wrong(), "") << "seed " << seed;
    }
}

}  // namespace
}  // namespace memsluice::chain
