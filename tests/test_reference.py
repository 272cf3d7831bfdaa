"""The API reference is built from the docstrings without a warning, whole, and leads nowhere that is not there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lambda_objectives as lo

pytest.importorskip("pdoc")
SCRIPT = Path(__file__).parents[1] / ".ci" / "reference.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the script is not beside the tests")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}


def page(module):
    return module.__name__.replace(".", "/") + ".html"


@pytest.mark.slow
def test_every_public_name_is_there(pages):
    for name in lo.__all__:
        value = getattr(lo, name)
        if name in lo._LAZY:
            for public in getattr(value, "__all__", []):
                assert f'id="{public}"' in pages[page(value)], f"{name}.{public}"
        else:
            assert f'id="{name}"' in pages["lambda_objectives.html"], name
    assert 'id="Boosted.fit"' in pages[page(lo.sklearn)]


@pytest.mark.slow
def test_links_lead_somewhere(pages):
    seen = 0
    for path, text in pages.items():
        for target, anchor in re.findall(r'href="([^"#:]*)#?([^":]*)"', text):
            there = path if not target else (Path(path).parent / target).as_posix()
            there = "/".join(_resolved(there))
            if there.endswith(".html"):
                seen += 1
                assert there in pages, f"{path}: {target}"
                assert not anchor or f'id="{anchor}"' in pages[there], f"{path}: {target}#{anchor}"
    assert seen > 100


def _resolved(path):
    parts = []
    for part in path.split("/"):
        parts = parts[:-1] if part == ".." else [*parts, part]
    return parts
