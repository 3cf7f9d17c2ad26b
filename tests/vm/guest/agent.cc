// SPDX-License-Identifier: GPL-2.0
// Runs commands in the guest for the host, over a virtio-serial port.

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

// A frame is a header and payload_bytes of payload. Numbers are little-endian, as on this machine.
enum class Kind : uint32_t {
  kHello = 1,   // host: a session begins; the payload comes back in kReady
  kReady,       // guest
  kStart,       // host: cwd, user id, terminal, count of arguments, arguments..., environment...
  kInput,       // host: bytes for standard input; none closes it
  kInputTaken,  // guest: how many bytes the command has taken (uint32), so that more may be sent
  kSignal,      // host: signal number (uint32) for the command's session
  kResize,      // host: rows and columns (two uint16) of the command's terminal
  kOutput,      // guest: bytes of standard output
  kError,       // guest: bytes of standard error
  kExit,        // guest: exit status, or minus the signal (int32); nothing follows
};

struct Header {
  uint32_t payload_bytes;
  uint32_t command;
  Kind kind;
};

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kOutgoingLimitBytes = 1 << 20;
constexpr int kLastReads = 32;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "agent: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

struct Request {
  std::string cwd;
  std::string user_id;
  bool terminal = false;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

std::optional<Request> parse_request(std::string_view payload) {
  std::vector<std::string> fields;
  while (!payload.empty()) {
    const size_t end = payload.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    fields.emplace_back(payload.substr(0, end));
    payload.remove_prefix(end + 1);
  }
  if (fields.size() < 5) return std::nullopt;
  const size_t arguments = std::strtoul(fields[3].c_str(), nullptr, 10);
  if (arguments < 1 || arguments > fields.size() - 4) return std::nullopt;
  const auto first = fields.begin() + 4;
  return Request{fields[0],
                 fields[1],
                 !fields[2].empty(),
                 {first, first + arguments},
                 {first + arguments, fields.end()}};
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void child_fails(const std::string& what) {
  const std::string message = what + ": " + std::strerror(errno) + "\n";
  (void)!write(STDERR_FILENO, message.data(), message.size());
  _exit(127);
}

// Runs in the child, its standard streams being in place.
[[noreturn]] void execute(Request& request) {
  std::signal(SIGPIPE, SIG_DFL);
  if (!request.user_id.empty()) {
    const auto id = static_cast<uid_t>(std::strtoul(request.user_id.c_str(), nullptr, 10));
    if (setgroups(0, nullptr) || setgid(id) || setuid(id)) child_fails("user " + request.user_id);
  }
  if (chdir(request.cwd.c_str())) child_fails(request.cwd);
  std::vector<char*> environment = pointers(request.environment);
  environ = environment.data();
  std::vector<char*> arguments = pointers(request.arguments);
  execvp(arguments[0], arguments.data());
  child_fails(request.arguments[0]);
}

struct Pipe {
  Fd read;
  Fd write;
};

Pipe make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC)) die("pipe");
  return {Fd(fds[0]), Fd(fds[1])};
}

class Command {
 public:
  // Starts the program; a failure to do so shows as standard error and status 127.
  explicit Command(Request request) {
    if (request.terminal) {
      start_on_terminal(request);
    } else {
      start_on_pipes(request);
    }
    pidfd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (!pidfd_.open()) die("pidfd_open");
    for (const Fd* fd : {&input_, &output_, &error_}) {
      if (fd->open()) fcntl(fd->get(), F_SETFL, fcntl(fd->get(), F_GETFL) | O_NONBLOCK);
    }
  }

  int input_fd() const { return pending_input_.empty() ? -1 : input_.get(); }
  int output_fd() const { return output_.get(); }
  int error_fd() const { return error_.get(); }
  int pidfd() const { return pidfd_.get(); }

  void add_input(std::string_view bytes) {
    if (bytes.empty()) input_ends_ = true;
    pending_input_ += bytes;
    close_input_when_done();
  }

  // Returns how many bytes are off our hands: taken by the program, or of no use to it any more.
  size_t write_input() {
    ssize_t taken = write(input_.get(), pending_input_.data(), pending_input_.size());
    if (taken < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (taken < 0) {
      taken = static_cast<ssize_t>(pending_input_.size());
      input_.reset();
    }
    pending_input_.erase(0, static_cast<size_t>(taken));
    close_input_when_done();
    return static_cast<size_t>(taken);
  }

  std::string read_output() { return read_some(output_); }
  std::string read_error() { return read_some(error_); }

  // Input that comes when the program has closed its end.
  size_t drop_input() {
    if (input_.open()) return 0;
    return std::exchange(pending_input_, {}).size();
  }

  void signal(int number) const { kill(-pid_, number); }

  void resize(uint16_t rows, uint16_t columns) const {
    const winsize size{rows, columns, 0, 0};
    if (terminal_) ioctl(output_.get(), TIOCSWINSZ, &size);
  }

  int32_t wait() const {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  void start_on_pipes(Request& request) {
    Pipe input = make_pipe();
    Pipe output = make_pipe();
    Pipe error = make_pipe();
    pid_ = fork();
    if (pid_ < 0) die("fork");
    if (pid_ == 0) {
      setsid();
      dup2(input.read.get(), STDIN_FILENO);
      dup2(output.write.get(), STDOUT_FILENO);
      dup2(error.write.get(), STDERR_FILENO);
      execute(request);
    }
    input_ = std::move(input.write);
    output_ = std::move(output.read);
    error_ = std::move(error.read);
  }

  void start_on_terminal(Request& request) {
    int master = -1;
    pid_ = forkpty(&master, nullptr, nullptr, nullptr);
    if (pid_ < 0) die("forkpty");
    if (pid_ == 0) execute(request);
    fcntl(master, F_SETFD, FD_CLOEXEC);
    terminal_ = true;
    output_ = Fd(master);
    input_ = Fd(fcntl(master, F_DUPFD_CLOEXEC, 0));
  }

  void close_input_when_done() {
    if (input_ends_ && pending_input_.empty() && !terminal_) input_.reset();
  }

  static std::string read_some(Fd& fd) {
    if (!fd.open()) return {};
    std::string bytes(kReadBytes, '\0');
    const ssize_t count = read(fd.get(), bytes.data(), bytes.size());
    // The end, or EIO when the last process has left a terminal.
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) fd.reset();
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return bytes;
  }

  pid_t pid_ = -1;
  Fd pidfd_;
  Fd input_;
  Fd output_;
  Fd error_;
  std::string pending_input_;
  bool input_ends_ = false;
  bool terminal_ = false;
};

class Agent {
 public:
  explicit Agent(Fd port) : port_(std::move(port)) {}

  [[noreturn]] void run() {
    for (;;) step();
  }

 private:
  struct Watch {
    uint32_t command;
    enum { kPort, kInput, kOutput, kError, kExit } what;
  };

  void step() {
    std::vector<pollfd> fds;
    std::vector<Watch> watches;
    const auto watch = [&](int fd, short events, Watch what) {
      if (fd < 0 || events == 0) return;
      fds.push_back({fd, events, 0});
      watches.push_back(what);
    };
    watch(port_.get(), static_cast<short>(POLLIN | (outgoing_.empty() ? 0 : POLLOUT)),
          {0, Watch::kPort});
    // A host that reads slowly slows the programs, not our memory.
    const short reads = outgoing_.size() < kOutgoingLimitBytes ? POLLIN : 0;
    for (auto& [id, command] : commands_) {
      watch(command.input_fd(), POLLOUT, {id, Watch::kInput});
      watch(command.output_fd(), reads, {id, Watch::kOutput});
      watch(command.error_fd(), reads, {id, Watch::kError});
      watch(command.pidfd(), reads, {id, Watch::kExit});
    }
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) die("poll");
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) handle(watches[i], fds[i].revents);
    }
  }

  void handle(const Watch& watch, short events) {
    if (watch.what == Watch::kPort) {
      handle_port(events);
      return;
    }
    const auto found = commands_.find(watch.command);
    if (found == commands_.end()) return;
    Command& command = found->second;
    switch (watch.what) {
      case Watch::kPort:
        break;
      case Watch::kInput:
        acknowledge(watch.command, command.write_input());
        break;
      case Watch::kOutput:
        forward(watch.command, Kind::kOutput, command.read_output());
        break;
      case Watch::kError:
        forward(watch.command, Kind::kError, command.read_error());
        break;
      case Watch::kExit:
        finish(watch.command, command);
        break;
    }
  }

  void handle_port(short events) {
    if ((events & POLLOUT) != 0) write_port();
    if ((events & (POLLIN | POLLHUP)) != 0) read_port();
  }

  void write_port() {
    const ssize_t count = write(port_.get(), outgoing_.data(), outgoing_.size());
    if (count < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE) die("write");
    outgoing_.erase(0, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }

  void read_port() {
    std::string bytes(kReadBytes, '\0');
    const ssize_t count = read(port_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno != EAGAIN && errno != EINTR) die("read");
    if (count == 0) {
      end_session();
      return;
    }
    incoming_.append(bytes, 0, static_cast<size_t>(std::max<ssize_t>(count, 0)));
    size_t start = 0;
    Header header{};
    while (incoming_.size() - start >= sizeof header) {
      std::memcpy(&header, incoming_.data() + start, sizeof header);
      if (incoming_.size() - start - sizeof header < header.payload_bytes) break;
      receive(header,
              std::string_view(incoming_).substr(start + sizeof header, header.payload_bytes));
      start += sizeof header + header.payload_bytes;
    }
    incoming_.erase(0, start);
  }

  // The host has closed the port: nobody is left who could end what runs.
  void end_session() {
    for (auto& [id, command] : commands_) {
      command.signal(SIGKILL);
      (void)command.wait();
    }
    commands_.clear();
    incoming_.clear();
    outgoing_.clear();
    // The kernel reports a closed port for as long as it is closed.
    poll(nullptr, 0, 500);
  }

  void receive(const Header& header, std::string_view payload) {
    if (header.kind == Kind::kHello) {
      send(0, Kind::kReady, payload);
      return;
    }
    if (header.kind == Kind::kStart) {
      start(header.command, payload);
      return;
    }
    const auto found = commands_.find(header.command);
    if (found == commands_.end()) return;  // it has just ended
    if (header.kind == Kind::kInput) {
      found->second.add_input(payload);
      acknowledge(header.command, found->second.drop_input());
    } else if (header.kind == Kind::kSignal && payload.size() == sizeof(uint32_t)) {
      uint32_t number = 0;
      std::memcpy(&number, payload.data(), sizeof number);
      found->second.signal(static_cast<int>(number));
    } else if (header.kind == Kind::kResize && payload.size() == 2 * sizeof(uint16_t)) {
      std::array<uint16_t, 2> size{};
      std::memcpy(size.data(), payload.data(), sizeof size);
      found->second.resize(size[0], size[1]);
    }
  }

  void start(uint32_t id, std::string_view payload) {
    std::optional<Request> request = parse_request(payload);
    if (request) {
      commands_.try_emplace(id, std::move(*request));
      return;
    }
    send(id, Kind::kError, "agent: malformed request\n");
    send_exit(id, 127);
  }

  void finish(uint32_t id, Command& command) {
    const int32_t status = command.wait();
    // What is in the pipes now is the program's. A process that it left behind may keep them open
    // and go on writing, so this ends.
    for (int reads = 0; reads < kLastReads; ++reads) {
      forward(id, Kind::kOutput, command.read_output());
      forward(id, Kind::kError, command.read_error());
    }
    send_exit(id, status);
    commands_.erase(id);
  }

  void forward(uint32_t id, Kind kind, const std::string& bytes) {
    if (!bytes.empty()) send(id, kind, bytes);
  }

  void acknowledge(uint32_t id, size_t taken) {
    const auto bytes = static_cast<uint32_t>(taken);
    if (bytes != 0) {
      send(id, Kind::kInputTaken, {reinterpret_cast<const char*>(&bytes), sizeof bytes});
    }
  }

  void send_exit(uint32_t id, int32_t status) {
    send(id, Kind::kExit, {reinterpret_cast<const char*>(&status), sizeof status});
  }

  void send(uint32_t id, Kind kind, std::string_view payload) {
    const Header header{static_cast<uint32_t>(payload.size()), id, kind};
    outgoing_.append(reinterpret_cast<const char*>(&header), sizeof header);
    outgoing_.append(payload);
  }

  Fd port_;
  std::string incoming_;
  std::string outgoing_;
  std::map<uint32_t, Command> commands_;
};

// The device of the port that QEMU gave this name; ports appear some time after the driver.
Fd open_port(std::string_view name) {
  namespace fs = std::filesystem;
  for (;;) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/sys/class/virtio-ports", error)) {
      std::string found;
      std::getline(std::ifstream(entry.path() / "name"), found);
      if (found != name) continue;
      const std::string device = "/dev/" + entry.path().filename().string();
      Fd port(open(device.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
      if (!port.open()) die(device);
      return port;
    }
    poll(nullptr, 0, 20);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PORT-NAME\n", argv[0]);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  Agent(open_port(argv[1])).run();
}
