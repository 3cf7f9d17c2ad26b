// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/provision/cpio.h"

#include <fmt/format.h>

namespace memsluice::provision {
namespace {

constexpr unsigned kDirectory = 0040755;
constexpr unsigned kFile = 0100644;

void pad_entry(std::string& archive) {
  archive.resize((archive.size() + 3) / 4 * 4);
}

// The format is in the kernel's Documentation/driver-api/early-userspace/buffer-format.rst. Owned
// by root, and without a time: the same table makes the same archive.
void add_entry(std::string& archive, unsigned inode, unsigned mode, std::string_view name,
               std::string_view content) {
  constexpr unsigned kNone = 0;
  const unsigned links = mode == kDirectory ? 2 : 1;
  archive += "070701";
  for (const size_t field :
       {size_t{inode}, size_t{mode}, size_t{kNone}, size_t{kNone}, size_t{links}, size_t{kNone},
        content.size(), size_t{kNone}, size_t{kNone}, size_t{kNone}, size_t{kNone}, name.size() + 1,
        size_t{kNone}})
    archive += fmt::format("{:08X}", field);
  archive += name;
  archive += '\0';
  pad_entry(archive);
  archive += content;
  pad_entry(archive);
}

}  // namespace

std::string cpio_archive(std::string_view path, std::string_view content) {
  std::string archive;
  unsigned inode = 0;
  for (size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1))
    add_entry(archive, ++inode, kDirectory, path.substr(0, at), {});
  add_entry(archive, ++inode, kFile, path, content);
  add_entry(archive, 0, 0, "TRAILER!!!", {});
  // Where the next archive may begin.
  archive.resize((archive.size() + 511) / 512 * 512);
  return archive;
}

}  // namespace memsluice::provision
