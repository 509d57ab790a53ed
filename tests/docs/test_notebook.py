"""The notebook runs from top to bottom and draws its figures."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.configs import config
from tests.docs.pages import BRIEF, ROOT
from tests.synthetic import write_study

NOTEBOOK = ROOT / "docs/notebooks/explore.ipynb"


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """The notebook after running on a synthetic study."""
    settings = BRIEF | {"grid.workflows": ["Voting", "Eval-Opt"], "grid.tasks": ["Math"]}
    write_study(tmp_path, config(tmp_path, ("0.3M",), settings))
    monkeypatch.setenv("ROLEWISE_RESULTS", str(tmp_path))
    book = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    return book


def test_the_notebook_tabulates_and_draws_two_figures(executed):
    data = [output.get("data", {}) for cell in executed.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in found for found in data) == 2
    assert any("Voting" in found.get("text/plain", "") for found in data)


def test_the_notebook_is_kept_without_outputs():
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells)
