"""The notebooks run from top to bottom, and what is kept of their outputs is fit to be shown."""

import json
import re
from pathlib import Path

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


def faults(cells):
    """What went wrong, and what was written to stderr, by number of the code cell."""
    for i, cell in enumerate(cells, 1):
        for output in cell["outputs"]:
            if output["output_type"] == "error" or output.get("name") == "stderr":
                yield i, "\n".join(texts(output))


@each
def test_runs_on_own_files(path):
    assert re.search(r"^PATHS = None\b", "".join(code_cells(path)[0]["source"]), re.MULTILINE)


@each
def test_outputs_are_kept(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run it from top to bottom"
    assert not list(faults(cells))
    assert any(cell["outputs"] for cell in cells)


@each
def test_outputs_name_no_folder_of_a_machine(path):
    said = [text for cell in code_cells(path) for output in cell["outputs"] for text in texts(output)]
    assert not [text for text in said if MACHINE.search(text)]


@pytest.mark.slow
@each
def test_executes(path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib.font_manager")  # makes the list of fonts, of which the kernel would tell on stderr
    package = Path(lo.__file__).parent
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # else boosters are a hundred times slower where a core is taken
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    where = nbformat.v4.new_code_cell("import lambda_objectives\nlambda_objectives.__file__")
    notebook.cells.append(where)
    client = nbclient.NotebookClient(
        notebook, kernel_name="python3", timeout=600, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    assert not list(faults([cell for cell in notebook.cells if cell.cell_type == "code"]))
    assert Path(where.outputs[0].data["text/plain"].strip("'")).parent == package
