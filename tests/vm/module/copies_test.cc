// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/vm/module/requests.h"

namespace memsluice::test {
namespace {

constexpr size_t kAreaBytes = size_t{8} << 20;
constexpr size_t kStride = 64;  // words: each page is written, most of it is not
constexpr int kRounds = 4;

uint64_t initial(size_t word) {
  return word * 0x9e3779b97f4a7c15ULL;
}

// Words of some memory, of which one thread adds to every kStride-th.
class Words {
 public:
  explicit Words(Pages* pages)
      : words_(reinterpret_cast<std::atomic<uint64_t>*>(pages->data())),
        count_(pages->bytes() / sizeof(uint64_t)) {
    for (size_t i = 0; i < count_; i++) words_[i] = initial(i);
    writer_ = std::thread([this] {
      for (; !stop_; rounds_++)
        for (size_t i = 0; i < count_; i += kStride) words_[i].fetch_add(1);
    });
  }

  // How many words are not what was written.
  size_t stop_and_count_wrong() {
    stop_ = true;
    writer_.join();
    size_t wrong = 0;
    for (size_t i = 0; i < count_; i++)
      wrong += words_[i] != initial(i) + (i % kStride ? 0 : rounds_);
    return wrong;
  }

 private:
  std::atomic<uint64_t>* words_;
  size_t count_;
  uint64_t rounds_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread writer_;
};

using Copies = RequestTest;

// Goes on for as long as the file that MEMSLUICE_COPIES_WHILE names is there: so long whoever runs
// this can trouble the engine.
TEST_F(Copies, AreWholeWhileThePagesAreWritten) {
  const char* file = std::getenv("MEMSLUICE_COPIES_WHILE");
  Pages base(kAreaBytes, kSlow), huge(kAreaBytes, kSlow, Pages::Huge::kAlways);
  Words base_words(&base), huge_words(&huge);
  for (int round = 0; round < kRounds || (file && access(file, F_OK) == 0); round++) {
    for (const Pages* pages : {&base, &huge}) {
      memsluice_request_status status;
      auto migrate = range_request(*pages, round % 2 ? kSlow : kFast, &status);
      ASSERT_EQ(run(&migrate), 0);
      expect_all_accounted(status);
    }
  }
  EXPECT_EQ(base_words.stop_and_count_wrong(), 0U);
  EXPECT_EQ(huge_words.stop_and_count_wrong(), 0U);
}

}  // namespace
}  // namespace memsluice::test
