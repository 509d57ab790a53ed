"""Projects that the tests of the graph share; making a finished one takes seconds."""

import shutil

import pytest

from tests.graph.project import SMALL, Project, copy_project, finish


@pytest.fixture(scope="session")
def fresh(tmp_path_factory) -> Project:
    """A project without results; tests only plan in it."""
    return copy_project(tmp_path_factory.mktemp("fresh"))


@pytest.fixture(scope="session")
def pristine(tmp_path_factory) -> Project:
    """A project whose small study is finished, as far as Snakemake can tell."""
    project = copy_project(tmp_path_factory.mktemp("pristine"))
    finish(project, SMALL)
    return project


@pytest.fixture
def finished(pristine, tmp_path) -> Project:
    """A copy of the finished project, to be changed."""
    shutil.copytree(pristine.path, tmp_path / "study")
    return Project(tmp_path / "study")
