// SPDX-License-Identifier: GPL-2.0
// fault-cost anon|shmem PAGES: touches each of so many new base pages once, and prints how many
// nanoseconds that took for each.
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr size_t kPageBytes = 4096;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "fault-cost: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

char* map(std::string_view kind, size_t bytes) {
  int file = -1;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (kind == "shmem") {
    file = memfd_create("fault-cost", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) fail("memfd_create");
    flags = MAP_SHARED;
  }
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (data == MAP_FAILED) fail("mmap");
  if (madvise(data, bytes, MADV_NOHUGEPAGE) != 0) fail("madvise");
  return static_cast<char*>(data);
}

double now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 3 ? argv[1] : "";
  const size_t pages = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if ((kind != "anon" && kind != "shmem") || pages == 0 || pages > size_t{1} << 24) {
    std::fprintf(stderr, "usage: fault-cost anon|shmem PAGES\n");
    return 2;
  }
  volatile char* data = map(kind, pages * kPageBytes);
  const double begin_ns = now_ns();
  for (size_t page = 0; page < pages; page++) data[page * kPageBytes] = 1;
  std::printf("%.1f\n", (now_ns() - begin_ns) / static_cast<double>(pages));
  return 0;
}
