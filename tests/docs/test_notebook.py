"""The notebook runs from top to bottom and draws its figures."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.docs.pages import ROOT

NOTEBOOK = ROOT / "docs/notebooks/explore.ipynb"


@pytest.fixture
def executed(monkeypatch):
    """The notebook after running on the shipped reference results."""
    monkeypatch.delenv("ROLEWISE_RESULTS", raising=False)
    book = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(
        book, timeout=120, startup_timeout=200, resources={"metadata": {"path": str(ROOT)}}
    ).execute()
    return book


def test_the_notebook_tabulates_and_draws_two_figures(executed):
    data = [output.get("data", {}) for cell in executed.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in found for found in data) == 2
    assert any("Voting" in found.get("text/plain", "") for found in data)


def test_the_notebook_is_kept_without_outputs():
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells)
