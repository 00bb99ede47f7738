"""Writes the table of docs/images.md from images.lock and the folders of images/.

Sizes and times are those of the machine that this runs on; what it has not built is written as not known.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.report.images import images_table
from orchestrator.sandbox.images import Layout, load_lock
from orchestrator.sandbox.images.listing import list_images

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "images.md"
BEGIN, END = "<!-- made by `make images-docs` -->\n", "<!-- end -->\n"


def main() -> None:
    layout = Layout()
    before, _, rest = DOCUMENT.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    table = images_table(list_images(load_lock(layout.lock), layout))
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
