# SPDX-License-Identifier: GPL-2.0
"""The command scripts/testbed."""

import argparse
import sys
from pathlib import Path

from . import kernels, modules, root
from .errors import TestbedError
from .paths import PROJECT


def _root(arguments: argparse.Namespace) -> int:
    print(root.ensure(update=arguments.update))
    return 0


def _build_module(arguments: argparse.Namespace) -> int:
    make_arguments = list(arguments.arguments)
    directory = PROJECT
    if make_arguments and "=" not in make_arguments[0] and Path(make_arguments[0]).is_dir():
        directory = Path(make_arguments.pop(0))
    root.ensure()
    for module in modules.build(kernels.find(arguments.kernel), directory, tuple(make_arguments)):
        print(module)
    return 0


def _add_kernel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel", default=kernels.DEFAULT, help=f"one of: {', '.join(kernels.KERNELS)}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/testbed", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("root", help="make the private Debian 13 root")
    command.add_argument("--update", action="store_true", help="take newer packages, if any")
    command.set_defaults(function=_root)

    command = commands.add_parser(
        "build-module",
        help="build kernel modules",
        description="Builds the modules of DIR (default: memsluice) inside the private root. The "
        "sources are copied first, so nothing is left among them. Further arguments go to make: "
        "W=1, C=1, V=1, clean.",
    )
    _add_kernel(command)
    command.add_argument("arguments", nargs="*", metavar="[DIR] [MAKE-ARGUMENT...]")
    command.set_defaults(function=_build_module)
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return arguments.function(arguments)
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
