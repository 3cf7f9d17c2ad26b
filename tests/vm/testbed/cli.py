# SPDX-License-Identifier: GPL-2.0
"""The command scripts/testbed."""

import argparse
import fcntl
import os
import select
import shutil
import signal
import struct
import sys
import termios
import tty
from pathlib import Path

from . import debug_kernel, guest_root, kernels, machines, modules, root
from .agent import Agent, Command
from .errors import TestbedError
from .paths import BUILD, CACHE, PROJECT
from .vm import Vm, connect

EPILOG = """\
examples:
  scripts/testbed build-module W=1           build memsluice's modules
  scripts/testbed shell two-tier             look around in a machine; gone when the shell ends
  scripts/testbed run two-tier -- numactl -H
  scripts/testbed run two-tier --kernel backports -- uname -r
  scripts/testbed boot two-tier              keep it running; see: attach
"""
AFTER_DASHES = "The command stands after --; a single word is a line for the shell."


def _root(arguments: argparse.Namespace) -> int:
    print(root.ensure(update=arguments.update))
    print(guest_root.ensure(update=arguments.update))
    return 0


def _build_module(arguments: argparse.Namespace) -> int:
    make_arguments = list(arguments.arguments)
    directory = PROJECT
    if make_arguments and Path(make_arguments[0]).is_dir():
        directory = Path(make_arguments.pop(0))
    for module in modules.build(kernels.find(arguments.kernel), directory, tuple(make_arguments)):
        print(module)
    return 0


def _debug_kernel(arguments: argparse.Namespace) -> int:
    print(debug_kernel.ensure(update=arguments.update))
    return 0


def _machines(_arguments: argparse.Namespace) -> int:
    for name in machines.names():
        machine = machines.load(name)
        print(f"{name:20} {machine.description}")
        for vm in machine.vms:
            for i, node in enumerate(vm.nodes):
                says = f", {node.latency_ns} ns" if node.latency_ns else ""
                cpus = f", {node.cpus} CPUs" if node.cpus else ""
                print(f"{'':20}   {vm.name}: node {i}: {node.size_mib} MiB{cpus}{says}")
    return 0


def _boot_one(arguments: argparse.Namespace) -> Vm:
    vm = Vm(machines.load(arguments.machine).only_vm(), arguments.kernel)
    print(f"{vm.directory.name}: up after {vm.boot_seconds:.1f} s", file=sys.stderr)
    return vm


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.argv:
        raise TestbedError("run: name the command to run, after --")
    with _boot_one(arguments) as vm:
        return _in_foreground(vm.start(_argv(arguments.argv), on_output=_pass_on))


def _shell(arguments: argparse.Namespace) -> int:
    with _boot_one(arguments) as vm:
        status = _interactive(vm.agent)
        for report in vm.kernel_reports():
            print(f"the kernel reported:\n{report}", file=sys.stderr)
        return status


def _boot(arguments: argparse.Namespace) -> int:
    with _boot_one(arguments) as vm:
        print(f"scripts/testbed attach {vm.directory.name}   (here: Ctrl-C ends the machine)")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            vm.agent.wait_for(lambda: False, None)
        except KeyboardInterrupt:
            return 0
    return 1


def _attach(arguments: argparse.Namespace) -> int:
    agent = connect(arguments.run)
    if arguments.argv:
        return _in_foreground(agent.start(_argv(arguments.argv), on_output=_pass_on))
    return _interactive(agent)


def _clean(arguments: argparse.Namespace) -> int:
    for path in BUILD.iterdir() if BUILD.exists() else ():
        if path == CACHE and not arguments.downloads:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return 0


def _argv(words: list[str]) -> str | list[str]:
    # One word is a line for the shell, as with ssh.
    return words[0] if len(words) == 1 else words


def _pass_on(data: bytes, error: bool) -> None:
    stream = sys.stderr.buffer if error else sys.stdout.buffer
    stream.write(data)
    stream.flush()


def _in_foreground(command: Command) -> int:
    command.close_stdin()
    try:
        status = command.wait().status
    except KeyboardInterrupt:
        command.kill(signal.SIGINT)
        status = command.wait(10).status
    return status if status >= 0 else 128 - status


def _interactive(agent: Agent) -> int:
    if not sys.stdin.isatty():
        raise TestbedError("an interactive shell needs a terminal; for scripts there is run")
    environment = {"TERM": os.environ.get("TERM", "linux"), "PS1": r"memsluice:\w\$ "}
    shell = agent.start(
        ["bash", "--norc", "-i"], environment=environment, terminal=True, on_output=_pass_on
    )
    saved = termios.tcgetattr(sys.stdin)
    signal.signal(signal.SIGWINCH, lambda *_: _resize(shell))
    _resize(shell)
    try:
        tty.setraw(sys.stdin, termios.TCSADRAIN)  # what was typed ahead stays
        while shell.status is None:
            if select.select([sys.stdin], [], [], 0.1)[0]:
                shell.write(os.read(sys.stdin.fileno(), 4096))
            agent.check()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)
    return shell.wait().status


def _resize(shell: Command) -> None:
    size = fcntl.ioctl(sys.stdin, termios.TIOCGWINSZ, bytes(8))
    shell.resize(*struct.unpack("HHHH", size)[:2])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/testbed",
        description="Virtual machines with several memory tiers, and modules built for them. "
        "Needs root on Debian 12 or 13; what is missing it installs or downloads itself, into "
        "build/testbed. docs/testbed.md tells how to add a machine and what a test looks like.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: object, text: str, **options: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, **({"description": text} | options))
        command.set_defaults(function=function)
        return command

    def add_kernel(command: argparse.ArgumentParser, default: str | None) -> None:
        choices = ", ".join(kernels.KERNELS)
        text = f"one of: {choices} (default: {default or 'the one that the machine names'})"
        command.add_argument("--kernel", default=default, help=text)

    def add_machine(command: argparse.ArgumentParser) -> None:
        add_kernel(command, None)
        command.add_argument("machine", metavar="MACHINE", help="see: scripts/testbed machines")

    command = add("root", _root, "make the private Debian 13 root and the guest's root")
    command.add_argument("--update", action="store_true", help="take newer packages, if any")

    command = add(
        "build-module",
        _build_module,
        "build kernel modules",
        description="Builds the modules of DIR (default: memsluice) inside the private root. The "
        "sources are copied first, so nothing is left among them. Further arguments go to make: "
        "W=1, C=1, V=1, clean. Prints the built files.",
    )
    add_kernel(command, kernels.DEFAULT)
    command.add_argument("arguments", nargs="*", metavar="[DIR] [MAKE-ARGUMENT...]")

    command = add(
        "debug-kernel",
        _debug_kernel,
        "build a kernel that checks itself (KASAN, lockdep, ...)",
        description="Builds Debian's kernel source with KASAN, lockdep, kmemleak, UBSAN and fault "
        "injection: twenty minutes on two idle CPUs, kept in build/testbed/debug-kernel. "
        "Then --kernel debug builds modules for it and boots machines with it.",
    )
    command.add_argument("--update", action="store_true", help="take a newer source, if any")

    add("machines", _machines, "list the machines that are described")

    add_machine(add("shell", _shell, "boot a machine, with a shell in it"))

    text = "boot a machine, run a command in it, exit with its status"
    add_machine(add("run", _run, text, epilog=AFTER_DASHES))

    add_machine(add("boot", _boot, "boot a machine and keep it until Ctrl-C"))

    text = "a shell, or a command, in a machine that runs"
    command = add("attach", _attach, text, epilog=AFTER_DASHES)
    command.add_argument("run", metavar="RUN", help="its folder's name in build/testbed/run")

    command = add("clean", _clean, "remove what the test bed has made; downloads are kept")
    command.add_argument("--downloads", action="store_true", help="remove them too")
    return parser


def main() -> int:
    words = sys.argv[1:]
    # Cut off first: argparse would take a command's options for ours.
    end = words.index("--") if "--" in words else len(words)
    parser = _parser()
    arguments = parser.parse_args(words[:end])
    arguments.argv = words[end + 1 :]
    if arguments.argv and arguments.function not in (_run, _attach):
        parser.error("a command after -- is for run and attach")
    try:
        if os.geteuid() != 0:
            raise TestbedError("needs root: it mounts, and installs what is missing")
        status = arguments.function(arguments)
        sys.stdout.flush()
        return status
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # as in: scripts/testbed machines | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 130
