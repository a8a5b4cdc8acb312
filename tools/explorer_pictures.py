"""Draw the pictures of docs/explorer.md: `polyseme demo`, then `python tools/explorer_pictures.py polyseme-demo`.

Needs playwright and Chromium. Pictures have 128 colors, which keeps the files small.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from polyseme.explore import write_page
from polyseme.runs import open_run

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
DOCUMENT = "scipy.optimize._linprog.linprog"


def main(run_folder: str) -> None:
    run = open_run(run_folder)
    text = "full" if run.texts else "excerpt"
    names = list(run.view.corpus.names)
    document = names.index(DOCUMENT) if DOCUMENT in names else 0
    shots = {
        "explorer_map": ("#/map", "light", 1200),
        "explorer_topic": ("#/topic/3", "light", 1200),
        "explorer_document": (f"#/document/{document}", "dark", 1200),
        "explorer_search": ("#/documents?q=sparse%20linear%20system", "light", 1200),
        "explorer_labels": ("#/labels", "dark", 1200),
    }
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "explorer.html"
        write_page(run, page_file, text=text)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (fragment, scheme, width) in shots.items():
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            page.goto(page_file.as_uri() + fragment)
            page.wait_for_timeout(2500)
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            picture.quantize(128, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)
            print(f"{name}.png", (PICTURES / f"{name}.png").stat().st_size)
            page.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
