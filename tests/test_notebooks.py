"""The notebooks run from top to bottom, on the user's own files too, and what is kept of their outputs can be shown."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import lambda_objectives as lo

NOTEBOOKS = sorted(Path(__file__).parents[1].joinpath("notebooks").glob("*.ipynb"))
MACHINE = re.compile(r"/(home|root|tmp|work)/")
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]


def texts(output):
    """All that an output says in words; pictures are left out."""
    if output["output_type"] == "stream":
        yield "".join(output["text"])
    elif output["output_type"] == "error":
        yield "\n".join([output["evalue"], *output["traceback"]])
    else:
        yield from ("".join(data) for kind, data in output["data"].items() if kind.startswith("text/"))


def faults(cells, told=True):
    """What went wrong, and with `told` what was written to stderr, by number of the code cell."""
    for i, cell in enumerate(cells, 1):
        for output in cell["outputs"]:
            if output["output_type"] == "error" or (told and output.get("name") == "stderr"):
                yield i, "\n".join(texts(output))


def execute(path, folder, monkeypatch, paths=None):
    """Run a notebook in a folder, on files if there are any; return its code cells."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("matplotlib.font_manager")  # makes the list of fonts, of which the kernel would tell on stderr
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    wanted = {name for cell in cells for name in re.findall(r"^(?:import|from) (\w+)", cell.source, re.MULTILINE)}
    missing = sorted(name for name in {*wanted, "ipykernel"} if find_spec(name) is None)
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    package = Path(lo.__file__).parent
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # else boosters are a hundred times slower where a core is taken
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.delenv("MPLBACKEND", raising=False)  # pictures are to be outputs
    if paths is not None:
        cells[0].source, changed = re.subn(
            r"^PATHS = None\b", f"PATHS = {paths!r}", cells[0].source, flags=re.MULTILINE
        )
        assert changed == 1
    where = nbformat.v4.new_code_cell("import lambda_objectives\nlambda_objectives.__file__")
    notebook.cells.append(where)
    client = nbclient.NotebookClient(
        notebook, kernel_name="python3", timeout=600, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    assert Path(where.outputs[0].data["text/plain"].strip("'")).parent == package
    return cells


def letor_files(folder):
    """Three small files of rankings, graded 0 to 2."""
    sklearn = pytest.importorskip("sklearn.datasets")
    paths = {}
    for seed, (name, queries) in enumerate({"train": 300, "valid": 150, "test": 200}.items()):
        shop = lo.datasets.product_search(queries, seed=seed)
        paths[name] = str(folder / f"{name}.txt")
        qid = np.repeat(np.arange(queries), shop.group)
        sklearn.dump_svmlight_file(shop.X, shop.y + shop.columns["t2"], paths[name], zero_based=False, query_id=qid)
    return paths


def tables(folder):
    """Small tables for the three stories on decorrelation, with texts and dates in them."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    n, days = 4000, 60
    a, b, c = rng.normal(size=(3, n))
    signal = rng.random(n) < 0.4
    mass = np.where(signal, 90 + 8 * b, 50 + rng.exponential(40, n))
    events = {"shape": signal + a, "energy": mass + 20 * c, "signal": signal.astype(int), "mass": mass}
    group = rng.choice(["x", "y", "z"], n)
    people = {"income": a + b, "postcode": c + (group == "x"), "repaid": a > 0.5 * c, "group": group}
    date = pandas.Timestamp("2020-01-01") + pandas.to_timedelta(np.repeat(np.arange(days), n // days + 1)[:n], "D")
    returns = {"beta": a + c, "value": b, "target": 0.5 * a + 0.2 * b + c, "exposure": a, "date": date}
    paths = {"mass": folder / "events.parquet", "protected": folder / "people.csv", "era": folder / "returns.csv"}
    pandas.DataFrame(events).to_parquet(paths["mass"])
    pandas.DataFrame(people).to_csv(paths["protected"], index=False)
    pandas.DataFrame(returns).to_csv(paths["era"], index=False)
    return {story: str(path) for story, path in paths.items()}


def test_all_are_told_of():
    assert [path.stem[:2] for path in NOTEBOOKS] == ["1_", "2_", "3_", "4_", "5_", "6_"]
    readme = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
    assert not [path.stem for path in NOTEBOOKS if f"`{path.stem}`" not in readme]


@each
def test_takes_own_files(path):
    assert re.search(r"^PATHS = None\b", "".join(code_cells(path)[0]["source"]), re.MULTILINE)


@each
def test_outputs_are_kept(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run it from top to bottom"
    assert not list(faults(cells))
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell["outputs"])


@each
def test_nothing_of_a_machine_is_kept(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    said = [text for cell in code_cells(path) for output in cell["outputs"] for text in texts(output)]
    assert not [text for text in said if MACHINE.search(text)]
    assert notebook["metadata"].keys() == {"kernelspec", "language_info"}
    assert not [cell["metadata"] for cell in notebook["cells"] if cell["metadata"]]


@pytest.mark.slow
@each
def test_executes(path, tmp_path, monkeypatch):
    assert not list(faults(execute(path, tmp_path, monkeypatch)))


@pytest.mark.slow
@pytest.mark.parametrize(("start", "files"), [("2_", letor_files), ("3_", tables), ("4_", letor_files)])
def test_executes_on_own_files(start, files, tmp_path, monkeypatch):
    path = next(path for path in NOTEBOOKS if path.stem.startswith(start))
    paths = files(tmp_path)
    cells = execute(path, tmp_path, monkeypatch, paths)
    assert not list(faults(cells, told=False))  # that bounds are out of reach, say, may be told of small data
