"""Make docs/pictures/report.png again: release the made-up city and photograph the label of its report in Chromium.

.venv/bin/python script/report_picture.py
"""

import base64
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "examples")]

import make_data  # noqa: E402

import browser  # noqa: E402
import holdfast as hf  # noqa: E402

#: Pixels of the picture's width; it ends a little below the label.
WIDTH, BELOW = 1060, 20


def main() -> None:
    """Release, photograph, and keep the picture."""
    with tempfile.TemporaryDirectory() as place, browser.Browser() as opened:
        folder = Path(place)
        for name in ("spec.yaml", "zones.csv"):
            shutil.copy(ROOT / "examples" / "city" / name, folder)
        make_data.city(folder)
        hf.job(folder / "spec.yaml").release()
        page = opened.page(folder / "release" / "report.html", width=WIDTH)
        height = page("document.getElementById('label').getBoundingClientRect().bottom") + BELOW
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        taken = page.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
    (ROOT / "docs" / "pictures" / "report.png").write_bytes(base64.b64decode(taken))


if __name__ == "__main__":
    main()
