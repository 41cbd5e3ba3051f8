"""``gdpa example``: write small files to try the commands with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..files import written_whole
from .options import RunOptions, argument, option
from .output import Output

# What to try first with each example.
FIRST = {
    "plants": "gdpa fit plants.csv --target species --out predictions.csv --report report.html",
    "reviews": "gdpa fit reviews.csv --target mood --out predictions.csv",
    "photos": "gdpa fit photos/ --out predictions.csv",
    "papers": "gdpa fit papers.csv --target author --id paper --edges continues.txt "
    "--out authors.csv",
    "cut": "gdpa solve borders.txt --problem max-cut --out cut.csv",
}


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(RunOptions):
    """Options of ``gdpa example``."""

    name: str = argument(f"One of {', '.join(FIRST)}.")
    out: str = option("Folder to write to.", "--out", "-o", default=".")
    force: bool = option("Replace files that exist.", "--force", default=False)


def example(options: ExampleOptions) -> None:
    r"""Write the files of an example to the current folder.

    \b
    gdpa example plants     plants.csv, new-plants.csv: irises, some with their species
    gdpa example reviews    reviews.csv: short reviews, some with their mood
    gdpa example photos     photos/, photos.csv: pictures of digits, some with their class
    gdpa example papers     papers.csv, continues.txt: the Federalist Papers and their links
    gdpa example cut        borders.txt, sides.csv: the borders of the states of the USA
    """
    with Output("example", json=options.json, quiet=options.quiet) as output:
        from ..datasets import example_files

        folder = Path(options.out)
        files = {folder / path: content for path, content in example_files(options.name).items()}
        found = [path for path in files if path.exists()]
        if found and not options.force:
            raise ValueError(f"{found[0]} exists; --force replaces it")
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(path) as staged:
                staged.write_bytes(content)
        named = [str(path) for path in files if path.parent == folder]
        if len(named) < len(files):
            named.append(f"{folder / 'photos'}/ ({len(files) - len(named)} pictures)")
        output.result = {"files": [str(path) for path in files], "try": FIRST[options.name]}
        output.note(f"wrote {', '.join(named)}", f"try: {FIRST[options.name]}")
