"""The house: who may import whom, what an import costs, and that every public name exists and shows how to be used."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import lambda_objectives as lo

PACKAGE = Path(lo.__file__).parent
ROOMS = (  # from the bottom up: a room knows those below it, not its neighbours; "" is the front door
    ("arrays", "warn", "kernels", "sockets", "version", "workers"),
    ("star",),
    ("queries",),
    ("whole",),
    ("metrics",),
    ("terms",),
    ("specs",),
    ("pooling",),
    ("run",),
    ("callers", "checkpoints", "columns", "meeting", "partitions", "postbox", "sessions", "stopping"),
    ("lightgbm_checkpoint", "xgboost_checkpoint"),
    ("lightgbm", "xgboost"),
    ("attaching", "calls"),
    ("evaluation", "objective"),
    ("",),
    ("sklearn",),
    ("tools",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
TOP = {"sklearn", "tools", "__main__"}
GUESTS = {  # who may import what is not always there
    "lightgbm": TOP | {"lightgbm"},
    "xgboost": TOP | {"xgboost", "xgboost_checkpoint", "meeting"},
    "sklearn": TOP,
    "scipy": TOP,
    "matplotlib": {"tools"},
    "tqdm": {"tools", "__main__"},
    "cupy": {"kernels", "run"},
    "dask": {"partitions"},
    "distributed": {"meeting", "postbox", "warn"},
    "pandas": TOP | {"partitions"},
}


def room(module):
    """The first part of a module's name: the room, if the package's own name has been left out."""
    return module.split(".")[0]


def imports():
    """(module, what it imports) for every import anywhere in the package, the package's own name left out."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((module, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}: a relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                yield from ((module, name if is_module(name) else node.module) for name in names)


def is_module(name):
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


IMPORTS = list(imports())
OWN = [(module, name[len("lambda_objectives") :].lstrip(".")) for module, name in IMPORTS if room(name) == PACKAGE.name]
OTHERS = [(module, room(name)) for module, name in IMPORTS if room(name) != PACKAGE.name]


def test_every_module_has_a_room():
    assert {room(module) for module, _ in IMPORTS} <= FLOOR.keys(), "a new module: give it a place in ROOMS"


def test_imports_go_one_way():
    assert len(OWN) > 30
    wrong = [
        f"{module} imports {name or 'the front door'}"
        for module, name in OWN
        if room(module) != room(name) and FLOOR[room(module)] <= FLOOR[room(name)]
    ]
    assert not wrong


def test_modules_of_a_room_import_each_other_in_no_circle():
    inside = {module: {name for other, name in OWN if other == module and name != module} for module, _ in OWN}
    done = set()
    while left := inside.keys() - done:
        free = {module for module in left if not (inside[module] & left)}
        assert free, f"a circle among {sorted(left)}"
        done |= free


def test_kernels_know_arrays_only():
    allowed = {"numpy", "numba", "cupy", *sys.stdlib_module_names}
    assert {name for module, name in OTHERS if room(module) == "kernels"} <= allowed


def test_only_those_who_need_a_library_import_it():
    wrong = [f"{m} imports {name}" for m, name in OTHERS if name in GUESTS and room(m) not in GUESTS[name]]
    known = {"numpy", "numba", *GUESTS, *sys.stdlib_module_names}
    assert not wrong
    assert {name for _, name in OTHERS} <= known, "a new dependency: say in GUESTS who may import it"


@pytest.mark.parametrize(
    ("code", "stays_out"),
    [
        ("import lambda_objectives", "lightgbm xgboost numba sklearn scipy matplotlib pandas polars dask cupy tqdm"),
        ("import lambda_objectives as lo; lo.Objective(lo.LambdaRank(lo.NDCG(10)))", "lightgbm xgboost sklearn"),
        ("import lambda_objectives as lo; lo.datasets.product_search(5)", "lightgbm xgboost sklearn matplotlib"),
        ("import lambda_objectives as lo; lo.lightgbm", "xgboost"),
        ("import lambda_objectives as lo; lo.xgboost", "lightgbm"),
    ],
)
def test_imports_are_light(code, stays_out):
    script = f"{code}; import sys; print(*set({stays_out.split()}) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_all_public_names_exist():
    assert len(set(lo.__all__)) == len(lo.__all__)
    for name in lo.__all__:
        assert getattr(lo, name) is not None
    assert set(lo.__all__) <= set(dir(lo))
    with pytest.raises(AttributeError, match="no attribute 'lambdamart'"):
        _ = lo.lambdamart


def public():
    """Classes and functions that users call: by the front door, and those of its modules that are meant for them."""
    for name in lo.__all__:
        value = getattr(lo, name)
        if not inspect.ismodule(value):
            yield name, value
            continue
        meant = getattr(value, "__all__", None)
        if meant is None and name == "datasets":
            meant = [n for n, f in vars(value).items() if inspect.isfunction(f) and f.__module__ == value.__name__]
        yield from ((f"{name}.{n}", getattr(value, n)) for n in meant or () if not n.startswith("_"))


PUBLIC = dict(public())


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if callable(value)])
def test_public_names_show_how_to_be_used(name):
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert "Examples\n--------\n>>> " in text


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isclass(value)])
def test_public_methods_are_documented(name):
    for method, value in vars(PUBLIC[name]).items():
        if not method.startswith("_") and (callable(value) or isinstance(value, property)):
            assert inspect.getdoc(value), method
