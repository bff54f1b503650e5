from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import made_site
import pytest

if find_spec("nbclient") is None:
    # Their tools are installed for one version only. Tests that kill processes take long, and are the same in all
    # versions.
    collect_ignore = ["test_types.py", "test_notebooks.py", "test_ends.py", "test_mcp.py"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[made_site.Site]:
    monkeypatch.chdir(tmp_path)
    with made_site.served() as site:
        yield site
