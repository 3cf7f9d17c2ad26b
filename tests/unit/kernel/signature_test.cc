// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <linux/btf.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

extern "C" {
#include "kernel/compat/signature.h"
}

namespace {

// Builds BTF as Documentation/bpf/btf.rst describes it.
class Btf {
 public:
  Btf() { strings_.push_back('\0'); }

  u32 type(const std::string& name, u32 kind, u32 members, u32 size_or_type,
           std::vector<u32> tail = {}) {
    words_.push_back(string(name));
    words_.push_back(kind << 24 | members);
    words_.push_back(size_or_type);
    words_.insert(words_.end(), tail.begin(), tail.end());
    return ++count_;
  }
  u32 integer(const std::string& name) { return type(name, BTF_KIND_INT, 0, 4, {0}); }
  u32 pointer(u32 to) { return type("", BTF_KIND_PTR, 0, to); }
  u32 structure(const std::string& name) { return type(name, BTF_KIND_STRUCT, 0, 8); }
  u32 function(const std::string& name, u32 result, std::vector<u32> parameters) {
    std::vector<u32> tail;
    for (u32 parameter : parameters) {
      tail.push_back(string("p"));
      tail.push_back(parameter);
    }
    u32 prototype =
        type("", BTF_KIND_FUNC_PROTO, static_cast<u32>(parameters.size()), result, tail);
    return type(name, BTF_KIND_FUNC, 0, prototype);
  }

  std::vector<char> bytes() const {
    btf_header header = {};
    header.magic = 0xeB9F;
    header.version = 1;
    header.hdr_len = sizeof(header);
    header.type_len = static_cast<u32>(words_.size() * 4);
    header.str_off = header.type_len;
    header.str_len = static_cast<u32>(strings_.size());
    std::vector<char> out(sizeof(header) + header.type_len + header.str_len);
    std::memcpy(out.data(), &header, sizeof(header));
    std::memcpy(out.data() + sizeof(header), words_.data(), header.type_len);
    std::memcpy(out.data() + sizeof(header) + header.type_len, strings_.data(), strings_.size());
    return out;
  }

 private:
  u32 string(const std::string& text) {
    if (text.empty()) return 0;
    u32 at = static_cast<u32>(strings_.size());
    strings_.insert(strings_.end(), text.begin(), text.end());
    strings_.push_back('\0');
    return at;
  }

  std::vector<u32> words_;
  std::vector<char> strings_;
  u32 count_ = 0;
};

bool matches(const std::vector<char>& bytes, const char* name, const char* declared,
             std::string* found = nullptr) {
  memsluice_btf* btf = memsluice_btf_open(bytes.data(), bytes.size());
  auto value = reinterpret_cast<intptr_t>(btf);
  if (value < 0 && value >= -4095) return false;
  char text[MEMSLUICE_SIGNATURE_MAX] = "";
  bool same = memsluice_signature_matches(btf, name, declared, text);
  if (found) *found = text;
  memsluice_btf_close(btf);
  return same;
}

std::vector<char> sample() {
  Btf btf;
  u32 folio = btf.pointer(btf.structure("folio"));
  u32 number = btf.integer("int");
  u32 unsigned_long = btf.integer("long unsigned int");
  u32 boolean = btf.type("bool", BTF_KIND_TYPEDEF, 0, btf.integer("_Bool"));
  u32 text = btf.pointer(btf.type("", BTF_KIND_CONST, 0, btf.integer("char")));
  btf.function("isolate", boolean, {folio});
  btf.function("drain", 0, {});
  btf.function("mixed", number, {text, unsigned_long, btf.pointer(folio), btf.pointer(0)});
  btf.function("twice", number, {folio});
  btf.function("twice", number, {unsigned_long});
  return btf.bytes();
}

TEST(Signature, SameTypesMatchWhateverTheNames) {
  auto bytes = sample();
  EXPECT_TRUE(matches(bytes, "isolate", "bool(struct folio * folio)"));
  EXPECT_TRUE(matches(bytes, "isolate", "bool(struct folio *another_name)"));
  EXPECT_TRUE(matches(bytes, "drain", "void(void)"));
  EXPECT_TRUE(
      matches(bytes, "mixed", "int(const char *a, unsigned long b, struct folio **c, void *d)"));
}

TEST(Signature, AnyDifferenceIsSeen) {
  auto bytes = sample();
  std::string found;
  EXPECT_FALSE(matches(bytes, "isolate", "int(struct folio *folio)", &found));
  EXPECT_EQ(found, "bool(struct folio *)");
  EXPECT_FALSE(matches(bytes, "isolate", "bool(struct page *folio)"));
  EXPECT_FALSE(matches(bytes, "isolate", "bool(struct folio **folio)"));
  EXPECT_FALSE(matches(bytes, "isolate", "bool(struct folio *folio, int nid)"));
  EXPECT_FALSE(matches(bytes, "isolate", "bool(void)"));
  EXPECT_FALSE(matches(bytes, "drain", "void(int unused)"));
  EXPECT_FALSE(matches(bytes, "mixed", "int(char *a, unsigned long b, struct folio **c, void *d)"));
  EXPECT_FALSE(matches(bytes, "absent", "void(void)"));
  EXPECT_FALSE(matches(bytes, "twice", "int(struct folio *folio)")) << "ambiguous";
}

// The blob comes from the kernel itself, but a reader that trusts nothing needs no such argument.
TEST(Signature, BrokenBtfIsRefusedOrReadWithinItsBounds) {
  const auto good = sample();
  std::mt19937 random(5);
  for (int run = 0; run < 20000; run++) {
    auto bytes = good;
    for (unsigned i = 0; i < 1 + random() % 4; i++)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % 4 ? bytes.size() : random() % bytes.size());
    std::vector<char> exact(bytes.begin(), bytes.end());  // so that a sanitizer sees the end
    matches(exact, "mixed", "int(const char *a, unsigned long b, struct folio **c, void *d)");
  }
  for (size_t length = 0; length < good.size(); length++) {
    std::vector<char> cut(good.begin(), good.begin() + static_cast<long>(length));
    matches(cut, "isolate", "bool(struct folio *folio)");
  }
}

}  // namespace
