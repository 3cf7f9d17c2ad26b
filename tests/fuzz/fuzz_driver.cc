// SPDX-License-Identifier: GPL-2.0
// Stands in for libFuzzer where the compiler is not clang: mutates the seeds without looking at
// coverage. Takes what we use of libFuzzer's arguments: -max_total_time=SECONDS, -seed=NUMBER,
// files and folders of inputs.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Random = std::mt19937_64;

size_t below(Random& random, size_t bound) {
  return std::uniform_int_distribution<size_t>(0, bound - 1)(random);
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> read_inputs(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {read(path)};
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.is_regular_file()) inputs.push_back(read(entry.path()));
  return inputs;
}

std::string_view any_part(const std::string& text, Random& random) {
  if (text.empty()) return {};
  const size_t begin = below(random, text.size());
  return std::string_view(text).substr(begin, 1 + below(random, 64));
}

void mutate(std::string& input, const std::vector<std::string>& seeds, Random& random) {
  const size_t at = below(random, input.size() + 1);
  switch (below(random, 6)) {
    case 0:
      input.insert(at, 1, static_cast<char>(below(random, 256)));
      break;
    case 1:
      input.erase(at, 1 + below(random, 16));
      break;
    case 2:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(random, 8)));
      break;
    case 3:
      input.insert(at, any_part(seeds[below(random, seeds.size())], random));
      break;
    case 4:
      input.insert(at, std::string(below(random, 300), "[{\"0a/%.\n"[below(random, 9)]));
      break;
    default:
      input.insert(at, std::to_string(random() >> below(random, 64)));
      break;
  }
}

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 5;
  uint64_t seed = 1;
  std::vector<std::string> seeds = {""};
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    if (argument.starts_with("-max_total_time="))
      seconds = std::atof(argument.c_str() + argument.find('=') + 1);
    else if (argument.starts_with("-seed="))
      seed = std::strtoull(argument.c_str() + argument.find('=') + 1, nullptr, 10);
    else if (!argument.starts_with("-") && std::filesystem::exists(argument))
      for (std::string& input : read_inputs(argument)) seeds.push_back(std::move(input));
  }
  for (const std::string& input : seeds) run(input);

  Random random(seed);
  size_t runs = seeds.size();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (; std::chrono::steady_clock::now() < end; runs++) {
    std::string input = seeds[below(random, seeds.size())];
    for (size_t mutations = 1 + below(random, 8); mutations > 0; mutations--)
      mutate(input, seeds, random);
    // What crashes is here for the next run.
    std::ofstream("last-input", std::ios::binary) << input;
    run(input);
  }
  std::printf("%zu runs with -seed=%llu\n", runs, static_cast<unsigned long long>(seed));
}
