// SPDX-License-Identifier: GPL-2.0
// Moves lists of pages between two nodes, by a method and by move_pages(2) in turn, and prints how
// long that took.
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "include/uapi/memsluice.h"

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugeBytes = size_t{2} << 20;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Options {
  std::string kind = "base";
  std::string method = "ours";
  size_t items = 512;
  size_t huge_every = 8;  // of a mixed list: the last of so many items is a huge page
  int rounds = 5;
  int from = 1;
  int to = 0;
};

// Memory on a node, and the addresses of the items in it.
class List {
 public:
  explicit List(const Options& options) {
    for (size_t item = 0; item < options.items; item++) {
      const bool huge =
          options.kind == "thp" ||
          (options.kind == "mixed" && item % options.huge_every == options.huge_every - 1);
      items_.push_back({.huge = huge});
    }
    add_pages(false, kPageBytes, options.from);
    add_pages(true, kHugeBytes, options.from);
  }

  [[nodiscard]] std::vector<void*> addresses() const {
    std::vector<void*> all;
    for (const Item& item : items_) all.push_back(item.data);
    return all;
  }

  [[nodiscard]] size_t pages() const {
    size_t count = 0;
    for (const Item& item : items_) count += bytes(item) / kPageBytes;
    return count;
  }

  [[nodiscard]] bool intact() const {
    for (size_t item = 0; item < items_.size(); item++)
      for (size_t at = 0; at < bytes(items_[item]); at += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, items_[item].data + at, sizeof(word));
        if (word != pattern(item, at)) return false;
      }
    return true;
  }

 private:
  struct Item {
    bool huge = false;
    char* data = nullptr;
  };

  static size_t bytes(const Item& item) { return item.huge ? kHugeBytes : kPageBytes; }
  static uint64_t pattern(size_t item, size_t at) {
    return (item << 32 | at) * 0x9e3779b97f4a7c15ULL;
  }

  void add_pages(bool huge, size_t size, int node) {
    size_t total = 0;
    for (const Item& item : items_) total += item.huge == huge ? size : 0;
    if (!total) return;
    void* mapping = mmap(nullptr, total + kHugeBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) fail("mmap");
    auto* data = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(mapping) + kHugeBytes - 1) &
                                         ~(kHugeBytes - 1));
    if (madvise(data, total, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) fail("madvise");
    const unsigned long mask = 1UL << node;
    if (syscall(SYS_mbind, data, total, MPOL_BIND, &mask, sizeof(mask) * 8, 0)) fail("mbind");
    for (size_t item = 0; item < items_.size(); item++) {
      if (items_[item].huge != huge) continue;
      items_[item].data = data;
      for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        const uint64_t word = pattern(item, at);
        std::memcpy(data + at, &word, sizeof(word));
      }
      data += size;
    }
    if (syscall(SYS_mbind, data - total, total, MPOL_DEFAULT, nullptr, 0, 0)) fail("mbind");
  }

  std::vector<Item> items_;
};

class Mover {
 public:
  Mover() : device_(open("/dev/" MEMSLUICE_DEVICE, O_RDWR | O_CLOEXEC)) {
    if (device_ < 0) fail("/dev/" MEMSLUICE_DEVICE);
    pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    if (pidfd_ < 0) fail("pidfd_open");
  }
  ~Mover() {
    close(pidfd_);
    close(device_);
  }
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  void with_memsluice(std::vector<void*>& addresses, int node, uint32_t flags) {
    memsluice_migrate migrate = {};
    migrate.size = sizeof(migrate);
    migrate.kind = MEMSLUICE_MIGRATE_ADDRESSES;
    migrate.flags = flags;
    migrate.pidfd = pidfd_;
    migrate.source_node = -1;
    migrate.target_node = node;
    migrate.address = reinterpret_cast<uint64_t>(addresses.data());
    migrate.length = addresses.size();
    results_.assign(addresses.size(), -1);
    migrate.results = reinterpret_cast<uint64_t>(results_.data());
    if (ioctl(device_, MEMSLUICE_IOC_MIGRATE, &migrate)) fail("MEMSLUICE_IOC_MIGRATE");
  }

  void with_move_pages(std::vector<void*>& addresses, int node) {
    const std::vector<int> nodes(addresses.size(), node);
    results_.assign(addresses.size(), -1);
    if (syscall(SYS_move_pages, 0, addresses.size(), addresses.data(), nodes.data(),
                results_.data(), MPOL_MF_MOVE) < 0)
      fail("move_pages");
  }

  [[nodiscard]] bool all_on(int node) const {
    for (int result : results_)
      if (result != node) return false;
    return true;
  }

 private:
  int device_;
  int pidfd_ = -1;
  std::vector<int> results_;
};

int64_t now_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

struct Took {
  int64_t ns = 0;
  int64_t cpu_ns = 0;  // of this thread, in whose name the kernel moves
};

// What it takes to move the list to a node.
Took time_move(Mover* mover, const std::string& method, std::vector<void*>* addresses, int node) {
  const Took begin = {now_ns(CLOCK_MONOTONIC), now_ns(CLOCK_THREAD_CPUTIME_ID)};
  if (method == "move_pages")
    mover->with_move_pages(*addresses, node);
  else
    mover->with_memsluice(*addresses, node, method == "ours" ? 0 : MEMSLUICE_MIGRATE_IN_TREE);
  const Took took = {now_ns(CLOCK_MONOTONIC) - begin.ns,
                     now_ns(CLOCK_THREAD_CPUTIME_ID) - begin.cpu_ns};
  if (!mover->all_on(node)) throw std::runtime_error(method + ": not every page has moved");
  return took;
}

void run(const Options& options) {
  List list(options);
  Mover mover;
  std::vector<void*> addresses = list.addresses();
  const std::array methods = {options.method, std::string("move_pages")};
  for (int round = 0; round < options.rounds; round++) {
    for (size_t i = 0; i < methods.size(); i++) {
      const std::string& method = methods[(i + static_cast<size_t>(round)) % methods.size()];
      // There and back: what one direction costs more, the other costs less.
      const Took there = time_move(&mover, method, &addresses, options.to);
      const Took back = time_move(&mover, method, &addresses, options.from);
      const nlohmann::json line = {{"kind", options.kind},
                                   {"items", options.items},
                                   {"pages", 2 * list.pages()},
                                   {"method", method},
                                   {"round", round},
                                   {"ns", there.ns + back.ns},
                                   {"cpu_ns", there.cpu_ns + back.cpu_ns}};
      std::cout << line.dump() << std::endl;
    }
  }
  if (!list.intact()) throw std::runtime_error("the pages do not hold what was written");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Moves a list of pages to and fro between two nodes, by memsluice and by move_pages(2) "
      "in turn.");
  app.add_option("--kind", options.kind, "what is in the list")
      ->check(CLI::IsMember({"base", "thp", "mixed"}));
  app.add_option("--method", options.method,
                 "how memsluice moves: by batches of its own, or by the kernel's migration with "
                 "memsluice's pool")
      ->check(CLI::IsMember({"ours", "in_tree"}));
  app.add_option("--items", options.items, "pages in the list, a huge one being one")
      ->check(CLI::Range(size_t{1}, size_t{MEMSLUICE_ADDRESSES_MAX}));
  app.add_option("--huge-every", options.huge_every, "the share of huge pages in a mixed list")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--rounds", options.rounds, "how often each method has its turn")
      ->check(CLI::Range(1, 100000));
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "migrate-lists: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
