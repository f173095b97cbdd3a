"""Run the notebooks and write them with their outputs: notebooks/NN-name.py (to review and edit) → NN-name.ipynb (to read).

python tools/write_notebooks.py [NN-name …]
The scripts have the percent format that Jupytext, VS Code and PyCharm read: `# %%` begins code, `# %% [markdown]` text.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FOLDER = Path(__file__).parents[1] / "notebooks"
SECONDS = 120
PLACES = re.compile(r"/(?:tmp|root|home|work|var|Users)/[^\s<>\"',;)]*")


def read_script(path: Path) -> Any:
    """Read a script as a notebook without outputs."""
    cells = []
    for place, block in enumerate(re.split(r"^# %%", path.read_text("utf-8"), flags=re.MULTILINE)[1:]):
        kind, _, text = block.partition("\n")
        if kind.strip() == "[markdown]":
            lines = [line.removeprefix("#").removeprefix(" ") for line in text.strip().splitlines()]
            cells.append(new_markdown_cell("\n".join(lines), id=f"cell-{place}"))
        else:
            cells.append(new_code_cell(text.strip(), id=f"cell-{place}"))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def run_script(path: Path, folder: Path) -> Any:
    """Run a script as a notebook, in a folder; return it with its outputs, without paths of this machine."""
    notebook = read_script(path)
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if "outputs" in cell:  # a progress bar that was removed leaves an empty output
            cell.outputs = [one for one in cell.outputs if one.get("data", {}).get("text/html") != ""]
        for output in cell.get("outputs", []):
            for holder in (output, output.get("data", {})):
                for key, value in holder.items():
                    if isinstance(value, str):
                        holder[key] = PLACES.sub("…", value)
    return notebook


def main() -> None:
    """Write the notebooks that are named, or all."""
    names = sys.argv[1:] or [path.stem for path in sorted(FOLDER.glob("*.py"))]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            notebook = run_script(FOLDER / f"{name}.py", Path(folder))
        nbformat.write(notebook, FOLDER / f"{name}.ipynb")
        print(f"{name}.ipynb")


if __name__ == "__main__":
    main()
