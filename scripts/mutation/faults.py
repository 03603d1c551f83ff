"""Small faults that a module can be given: which there are, how each is named, and the module with one of them.

Faults are made in the syntax tree. Texts, annotations, decorators and the wording of errors are left alone.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.RShift: ast.LShift,
}
_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "amin": "amax",
    "amax": "amin",
    "sum": "mean",
    "floor": "ceil",
    "ceil": "floor",
    "find": "rfind",
    "rfind": "find",
    "argmax": "argmin",
    "zeros": "ones",
    "startswith": "endswith",
    "endswith": "startswith",
    "partition": "rpartition",
    "exp": "log",
    "log": "exp",
}
_LEFT_OUT = {"detach", "clamp", "strip", "lower", "casefold", "removeprefix", "removesuffix", "sorted"}
_COMMUTATIVE = {*_NAMES, "isinstance", "maximum", "minimum", "logaddexp", "isclose", "allclose", "equal", "array_equal"}
_UNTOUCHED = ("annotation", "returns", "decorator_list", "type_params")
_DELETED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        path: The module, relative to the checkout.
        name: Where it is and what it changes; stays the same when other lines of the module move.
        line: Where it is now.
        number: Its place among the module's faults.
    """

    path: str
    name: str
    line: int
    number: int


@dataclass(frozen=True)
class _Edit:
    """``old`` becomes ``new`` in a field of ``owner``; with an index the field is a list."""

    owner: ast.AST
    field: str
    index: int | None
    old: list[ast.AST]
    new: list[ast.AST]

    def apply(self) -> None:
        self._put(self.old, self.new)

    def revert(self) -> None:
        self._put(self.new, self.old)

    def _put(self, old: list[ast.AST], new: list[ast.AST]) -> None:
        if self.index is None:
            setattr(self.owner, self.field, new[0])
        else:
            getattr(self.owner, self.field)[self.index : self.index + len(old)] = new


def faults_of(path: str, source: str) -> list[Fault]:
    """Every fault that the module can be given, in the order of its text."""
    found, seen = [], Counter[str]()
    for number, (edit, statement, where) in enumerate(_edits(ast.parse(source), None, "")):
        before = _headline(statement)
        edit.apply()
        after = _headline(statement if edit.old[0] is not statement else edit.new[0])
        after += " comes first" if len(edit.new) > 1 else ""
        edit.revert()
        name = f"{path} {where or 'module'}: {before}  =>  {after}"
        seen[name] += 1
        found.append(Fault(path, f"{name} #{seen[name]}" if seen[name] > 1 else name, statement.lineno, number))
    return found


def with_fault(source: str, number: int) -> ast.Module:
    """The module's tree with one of its faults."""
    tree = ast.parse(source)
    edit, _, _ = next(islice(_edits(tree, None, ""), number, None))
    edit.apply()
    return ast.fix_missing_locations(tree)


def _headline(node: ast.AST) -> str:
    lines = ast.unparse(node).splitlines()
    return next((line for line in lines if not line.startswith("@")), "")


def _edits(node: ast.AST, statement: ast.stmt | None, where: str) -> Iterator[tuple[_Edit, ast.stmt, str]]:
    """Edits below a node, each with the statement it is in and the function or class that holds it."""
    for field, value in ast.iter_fields(node):
        if field in _UNTOUCHED:
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            inside = child if isinstance(child, ast.stmt) else statement
            if inside is not None:
                place = index if isinstance(value, list) else None
                yield from ((_Edit(node, field, place, [child], [new]), inside, where) for new in _variants(child))
                if isinstance(value, list) and _same_name_twice(value[index : index + 2]):
                    pair = value[index : index + 2]
                    yield _Edit(node, field, index, pair, pair[::-1]), inside, where
            if not isinstance(child, ast.Raise):
                name = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else ""
                yield from _edits(child, inside, ".".join(filter(None, [where, name])))


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    text = node.value if isinstance(node, ast.Expr) else node
    return isinstance(text, ast.JoinedStr) or (isinstance(text, ast.Constant) and isinstance(text.value, str))


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    if type(node) in _OPERATORS:
        yield _OPERATORS[type(node)]()
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.If) and isinstance(node.test, (ast.Name, ast.Attribute, ast.Call)):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Call):
        yield from _other_calls(node)
    elif _may_go(node):
        yield ast.Pass()


def _may_go(node: ast.AST) -> bool:
    """Whether a statement can be left out, so that the module still runs."""
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], (ast.Attribute, ast.Subscript))
    return isinstance(node, _DELETED) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))


def _other_constants(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield ast.Constant(node.value * 1.1 or 1.0)


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in _NAMES:
        other = deepcopy(node)
        setattr(other.func, "attr" if isinstance(node.func, ast.Attribute) else "id", _NAMES[called])
        yield other
    if called in _LEFT_OUT:
        yield node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]
    plain = [argument for argument in node.args[:2] if not isinstance(argument, ast.Starred)]
    if len(plain) == 2 and ast.dump(plain[0]) != ast.dump(plain[1]) and called not in _COMMUTATIVE:
        yield ast.Call(node.func, [*plain[::-1], *node.args[2:]], node.keywords)
    for index in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, node.keywords[:index] + node.keywords[index + 1 :])


def _same_name_twice(pair: list[ast.AST]) -> bool:
    """Whether two neighbouring statements assign the same name, so that their order matters."""
    if len(pair) < 2 or not all(isinstance(node, (ast.Assign, ast.If)) for node in pair):
        return False
    return bool(_assigned(pair[0]) & _assigned(pair[1]))


def _assigned(node: ast.AST) -> set[str]:
    """Names that a statement assigns; what a comprehension calls its items is its own."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store) else set()
    parts = ast.iter_child_nodes(node)
    return set().union(*(_assigned(part) for part in parts if not isinstance(part, ast.comprehension)))
