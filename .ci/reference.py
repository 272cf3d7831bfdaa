"""The API reference as HTML pages, from the docstrings: ``python .ci/reference.py FOLDER`` (pip install pdoc)."""

import contextlib
import dataclasses
import sys
import typing
import warnings
from pathlib import Path

import pdoc
import pdoc.render
from sklearn.base import BaseEstimator

import lambda_objectives as lo


def build(folder: Path) -> None:
    """Write a page for the package and one for each of its public modules; a warning is an error."""
    modules = [vars(lo).setdefault(name, getattr(lo, name)) for name in lo._LAZY]  # pdoc does not touch them itself
    _show_shared_methods(lo.sklearn)
    for module in (lo, *modules):
        for value in list(vars(module).values()):
            if isinstance(value, type) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields")):
                _resolve(value.__new__ if hasattr(value, "_fields") else value.__init__, value)
    package = lo.__name__
    names = [package, rf"!{package}\..*", *(module.__name__ for module in modules), rf"!{package}\.sklearn\..*"]
    pdoc.render.configure(docformat="numpy", show_source=False)
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), contextlib.chdir(folder):  # no copy of the package is there
        warnings.simplefilter("error")
        pdoc.pdoc(*names, output_directory=folder)


def _show_shared_methods(module: typing.Any) -> None:
    """Show what estimators inherit from one another, and not what scikit-learn adds to each of them."""
    kinds = {base for name in module.__all__ for base in getattr(module, name).__mro__}
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        if not issubclass(kind, BaseEstimator) or kind is BaseEstimator:
            continue
        if not hasattr(module, kind.__name__):
            kind.__module__ = module.__name__
            setattr(module, kind.__name__, kind)
            module.__all__ = [*module.__all__, kind.__name__]
        for name, value in vars(kind).items():
            if name.startswith("set_") and name.endswith("_request"):
                value.__doc__ = "@private"


def _resolve(made: typing.Any, kind: type) -> None:
    """Have the types of what makes a dataclass or a named tuple known where they are shown, else leave them out."""
    try:
        made.__annotations__ = typing.get_type_hints(made, vars(sys.modules[kind.__module__]))
    except NameError:
        made.__annotations__ = {}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python .ci/reference.py FOLDER")
    build(Path(sys.argv[1]))
