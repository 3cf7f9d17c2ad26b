# SPDX-License-Identifier: GPL-2.0
import ast

from .tree import Tree, interpreter

SHELLS = ("sh", "bash", "dash")
PYTHON_COLUMNS = 100


def include_directions(tree: Tree) -> list[str]:
    return tree.run("scripts/check-includes")


def shell(tree: Tree) -> list[str]:
    scripts = [path for path in tree.files if path.suffix == ".sh" or interpreter(path) in SHELLS]
    return tree.run("shellcheck", "--external-sources", *scripts)


def python(tree: Tree) -> list[str]:
    """Compiles, has short lines, and says what each function takes and returns."""
    findings = []
    for path in tree.files:
        if path.suffix != ".py" and interpreter(path) != "python3":
            continue
        text = path.read_text()
        findings += [
            f"{tree.name(path)}:{number}: longer than {PYTHON_COLUMNS} columns"
            for number, line in enumerate(text.splitlines(), 1)
            if len(line) > PYTHON_COLUMNS
        ]
        try:
            module = ast.parse(text)
        except SyntaxError as error:
            findings.append(f"{tree.name(path)}:{error.lineno}: {error.msg}")
            continue
        findings += [
            f"{tree.name(path)}:{node.lineno}: {node.name} lacks type hints"
            for node in ast.walk(module)
            if isinstance(node, ast.FunctionDef) and not _typed(node)
        ]
    return findings


def _typed(function: ast.FunctionDef) -> bool:
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return function.returns is not None and all(
        parameter is None or parameter.annotation or parameter.arg in ("self", "cls")
        for parameter in parameters
    )
