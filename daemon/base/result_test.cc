// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace memsluice {
namespace {

Result<int> half(int number) {
  if (number % 2 == 0) return number / 2;
  return Error{.object = "number", .message = "is odd"};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_TRUE(half(4).ok());
  EXPECT_EQ(*half(4), 2);
  ASSERT_FALSE(half(3).ok());
  EXPECT_EQ(half(3).error().message, "is odd");
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, OfTheSameTypeAsTheErrorsStringsIsNotAmbiguous) {
  Result<std::string> result = std::string("value");
  EXPECT_EQ(*result, "value");
}

TEST(Result, AddsContextToErrorsOnly) {
  EXPECT_EQ(*half(4).with_context("halving"), 2);
  auto failed = half(3).with_context("halving").with_context("reading");
  EXPECT_EQ(failed.error().describe(), "reading: halving: number: is odd");
  EXPECT_TRUE(Result<void>().with_context("doing nothing").ok());
}

TEST(Error, DescribesItsHint) {
  Error error = Error{.message = "no module"}.with_hint("load it");
  EXPECT_EQ(error.describe(), "no module (load it)");
}

TEST(Error, OfErrnoNamesTheCall) {
  Error error = errno_error(ENOENT, "open", "/dev/memsluice");
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.os_error, ENOENT);
  EXPECT_EQ(error.describe(), "/dev/memsluice: open: No such file or directory");
  EXPECT_EQ(errno_error(EPERM, "ioctl", "").code, ErrorCode::kDenied);
  EXPECT_EQ(errno_error(EBUSY, "ioctl", "").code, ErrorCode::kConflict);
  EXPECT_EQ(errno_error(EIO, "ioctl", "").code, ErrorCode::kFailed);
}

TEST(Error, CodesHaveNamesThatLeadBack) {
  for (ErrorCode code :
       {ErrorCode::kBadRequest, ErrorCode::kUnknownMethod, ErrorCode::kDenied, ErrorCode::kNotFound,
        ErrorCode::kConflict, ErrorCode::kUnavailable, ErrorCode::kFailed})
    EXPECT_EQ(error_code_from_name(error_code_name(code)), code);
  EXPECT_EQ(error_code_from_name("no such code"), std::nullopt);
}

}  // namespace
}  // namespace memsluice
