"""Draws the explanation in the tutorial: ``python docs/images/make_explanation.py``, with playwright."""

from __future__ import annotations

import shutil
from pathlib import Path

from sklearn.model_selection import train_test_split

from treedot import TreeClassifier, explain, read_trees

HERE = Path(__file__).parent.resolve()
WIDTH = 900


def draw_explanation() -> None:
    """Open the page on the first mistake of the tutorial's first model."""
    from playwright.sync_api import sync_playwright  # where there is a browser: tests import all modules

    questions = read_trees(HERE.parent / "examples" / "questions.tsv")
    X_train, X_test, y_train, y_test = train_test_split(
        questions, questions.columns["label"], train_size=100, random_state=0
    )
    model = TreeClassifier().fit(X_train, y_train)
    pairs = enumerate(zip(model.predict(X_test), y_test, strict=True))
    wrong = next(i for i, (predicted, truth) in pairs if predicted != truth)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1000}, device_scale_factor=1.2)
        page.set_content(explain(model, X_test[wrong], n_fragments=5).to_html())
        bottom = page.get_by_text("What the numbers mean").bounding_box()
        assert bottom is not None
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": bottom["y"] - 8}
        page.screenshot(path=HERE / "explanation.png", clip=clip, full_page=True)
        browser.close()


if __name__ == "__main__":
    draw_explanation()
