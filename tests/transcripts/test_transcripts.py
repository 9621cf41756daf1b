"""Every dialogue goes as it is written down. ``pytest --rewrite`` writes it anew: read the diff."""

from pathlib import Path

import pytest

from transcripts.dialogue import MARK, played

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_dialogue(path: Path, request: pytest.FixtureRequest) -> None:
    told = path.read_text()
    came = played(told)
    if request.config.getoption("--rewrite"):
        path.write_text(came)
        return
    assert came.splitlines() == told.splitlines(), "--rewrite writes it anew: read the diff"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_purpose_comes_first(path: Path) -> None:
    purpose, *_ = path.read_text().split(MARK, 1)
    assert purpose.startswith("# ")
    assert all(line.startswith("# ") for line in purpose.splitlines() if line)


def test_there_are_enough() -> None:
    assert len(TRANSCRIPTS) >= 25
