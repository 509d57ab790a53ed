import pytest

from tests import configs, synthetic


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """A finished synthetic study of one scale: configuration and layout; read only."""
    root = tmp_path_factory.mktemp("study") / "results"
    config = configs.config(root)
    return config, synthetic.write_study(root, config)
