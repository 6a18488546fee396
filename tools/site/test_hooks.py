import logging
import unittest
from pathlib import Path

from mkdocs.config.base import load_config
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

import hooks

HERE = Path(__file__).resolve().parent


class Hooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.config = load_config(str(HERE / "mkdocs.yml"))
        cls.config.plugins._current_plugin = "test"  # File.generated wants one

    def markdown(self, text, source="guides/a.md"):
        files = Files([
            File.generated(self.config, uri, content="")
            for uri in ("index.md", "guides/a.md", "guides/b.md", "decisions/README.md", "operate/list.png")
        ])
        files.append(File.generated(self.config, "guides/guides_test.go", content="", inclusion=InclusionLevel.EXCLUDED))
        page = Page(None, files.get_file_from_path(source), self.config)
        return hooks.on_page_markdown(text, page, self.config, files)

    def test_links(self):
        url = "https://github.com/perdure/perdure"
        for source, link, want in [
            ("guides/a.md", "b.md#limits", "b.md#limits"),
            ("guides/a.md", "../decisions", "../decisions/README.md"),
            ("guides/a.md", "../../README.md", "../index.md"),
            ("guides/a.md", "../../go.mod", f"{url}/blob/main/go.mod"),
            ("guides/a.md", "../../examples", f"{url}/tree/main/examples"),
            ("guides/a.md", "guides_test.go", f"{url}/blob/main/docs/guides/guides_test.go"),
            ("guides/a.md", "https://example.com/a.md", "https://example.com/a.md"),
            ("guides/a.md", "#limits", "#limits"),
            ("index.md", "docs/guides/a.md", "guides/a.md"),
            ("index.md", "docs/operate/list.png", "operate/list.png"),
            ("index.md", "LICENSE", f"{url}/blob/main/LICENSE"),
        ]:
            with self.subTest(source=source, link=link):
                self.assertEqual(self.markdown(f"# A\n\n[`b`]({link})\n", source), f"# A\n\n[`b`]({want})\n")

    def test_code_is_left_as_it_is(self):
        text = "# A\n\n`[b](../../go.mod)`\n\n```\n[b](../../go.mod)\n```\n"
        self.assertEqual(self.markdown(text), text)

    def test_problems_are_warnings(self):
        for text in ("no title\n", "# A\n\n[b](gone.md)\n", "# A\n\n[b](../../gone.go)\n", "# A\n\n[b](../../../gone)\n"):
            with self.subTest(text=text), self.assertLogs(hooks.log, logging.WARNING):
                self.markdown(text)

    def test_anchors_are_those_of_github(self):
        for heading, want in {"Retry policies": "retry-policies", "What R1, R2 … mean": "what-r1-r2--mean", "The `--all` flag_s": "the---all-flag_s"}.items():
            self.assertEqual(hooks.github_slug(heading.replace("`", ""), "-"), want)

    def test_navigation_has_the_sections_in_order(self):
        titles = [title for entry in hooks.on_config(self.config).nav for title in entry]
        sections = ["Home", *(s["title"] for s in self.config.extra["sections"])]
        self.assertEqual(titles, [t for t in sections if t in titles])
        self.assertIn("Guides", titles)


if __name__ == "__main__":
    unittest.main()
