"""The README's own code runs as it stands, and its commands are there for .ci/run to find."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not beside the tests")


@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored")  # as LightGBM says of its own default
@pytest.mark.filterwarnings("ignore:no late round keeps:lambda_objectives.LambdaObjectivesWarning")
def test_code_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    namespace = {"__name__": "__main__"}
    for block in blocks:
        exec(block, namespace)
    printed = capsys.readouterr().out.split()
    assert 0.5 < float(printed[0]) < 1


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_commands_are_marked(name):
    assert re.search(rf"^<!-- {name} -->\n```sh\npython3 -m venv ", README.read_text(encoding="utf-8"), re.MULTILINE)
