"""``relist new-driver``: a commented driver to begin with, written into a folder."""

from pathlib import Path

from relist_conformance.errors import ConformanceError, quoted

_DRIVERS = Path(__file__).with_name("drivers")
SKELETONS = {
    "python": {"driver.py": _DRIVERS / "skeleton.py"},
    "typescript": {
        "driver.mjs": _DRIVERS / "node" / "skeleton.mjs",
        "contract.mjs": _DRIVERS / "node" / "contract.mjs",
    },
}
"""By language, the files to write and what they are copies of."""


def write_driver(language: str, folder: Path) -> tuple[Path, ...]:
    """Write the skeleton into a folder, which is made if need be; give the files, the driver first.

    Raises ``ConformanceError`` where the language is not known, a file is there already (nothing is
    written then), or the folder cannot be written to.
    """
    if language not in SKELETONS:
        raise ConformanceError(f"--lang {quoted(language)} is not one of {', '.join(SKELETONS)}")
    files = {folder / name: source for name, source in SKELETONS[language].items()}
    for file in files:
        if file.exists():
            raise ConformanceError(f"{quoted(str(file))} exists already")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, source in files.items():
            with file.open("x", encoding="utf-8") as new:
                new.write(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConformanceError(f"folder {quoted(str(folder))}: {error.strerror}") from None
    return tuple(files)
