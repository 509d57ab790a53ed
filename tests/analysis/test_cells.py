"""Reading the tidy table: what is missing, damaged or foreign is named with its remedy."""

import pytest

from rolewise.analysis.cells import read_cells_file
from rolewise.errors import DataError


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("", "damaged .*rolewise collect"), ("a,b\n1,2\n", "columns missing or unknown")],
)
def test_a_table_that_collect_did_not_write_is_refused(tmp_path, content, complaint):
    file = tmp_path / "cells.csv"
    with pytest.raises(DataError, match="no such file"):
        read_cells_file(file)
    file.write_text(content)
    with pytest.raises(DataError, match=complaint):
        read_cells_file(file)
