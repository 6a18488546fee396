"""Hooks of MkDocs: the navigation from the folders of docs, the home page from README.md, links as on GitHub, Mermaid without a CDN.

A problem is logged as a warning, which fails the build in strict mode.
"""

import hashlib
import logging
import os
import posixpath
import re
import unicodedata
from pathlib import Path

from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks.perdure")

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs"
MERMAID = ROOT / ".site" / "mermaid" / "package" / "dist" / "mermaid.min.js"
SCRIPT = "assets/mermaid.min.js"

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)((?:\s+\"[^\"]*\")?\))")
NO_LINK = re.compile(r"\]\((?=[^()\n\"]* [^()\n\"]*\))")  # brackets and parentheses of code that is not marked as such
TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)
CODE = re.compile(r"(^```.*?^```\s*?$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def github_slug(text, separator):
    """Return the anchor that GitHub gives a heading."""
    text = unicodedata.normalize("NFC", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", separator)


def title_of(text):
    found = TITLE.search(CODE.sub("", text))
    return found.group(1).strip() if found else ""


def on_config(config):
    config.mdx_configs.setdefault("toc", {})["slugify"] = github_slug
    docs = Path(config.docs_dir)
    config.nav = [{"Home": "index.md"}]
    for section in config.extra["sections"]:
        pages = section_pages(docs / section["folder"], section.get("first", []))
        if pages:
            config.nav.append({section["title"]: [f"{section['folder']}/{name}" for name in pages]})
    return config


def section_pages(folder, first):
    """Return the names of a section's pages: its README.md, those that come first, and the others by their titles."""
    order = {name: n for n, name in enumerate(["README.md", *first])}
    titles = {p.name: title_of(p.read_text("utf-8")) for p in folder.glob("*.md")}
    numbered = folder.name == "decisions"
    return sorted(titles, key=lambda name: (order.get(name, len(order)), name if numbered else titles[name].lower()))


def on_files(files, config):
    files.append(File.generated(config, "index.md", abs_src_path=str(ROOT / "README.md")))
    pinned = (Path(__file__).parent / "mermaid.sha256").read_text("utf-8").split()[0]
    if MERMAID.exists() and hashlib.sha256(MERMAID.read_bytes()).hexdigest() == pinned:
        files.append(File.generated(config, SCRIPT, abs_src_path=str(MERMAID)))
    else:
        log.warning("%s is missing, or does not have the checksum in mermaid.sha256: run make docs", MERMAID)
    return files


def on_page_markdown(markdown, page, config, files):
    source = "README.md" if page.file.src_uri == "index.md" else posixpath.join(DOCS, page.file.src_uri)
    if not title_of(markdown):
        log.warning("%s has no title", source)
    parts = CODE.split(markdown)
    # An odd part is code. A link's text may have inline code, so links are found with code replaced by marks.
    code = parts[1::2]
    text = "".join(p if n % 2 == 0 else f"\x00{n // 2}\x00" for n, p in enumerate(parts))
    text = NO_LINK.sub("]\\(", text)
    text = LINK.sub(lambda m: m[1] + resolve(m[2], source, page, config, files) + m[3], text)
    return re.sub("\x00(\\d+)\x00", lambda m: code[int(m[1])], text)


def resolve(link, source, page, config, files):
    """Return the target of a link of a page: another page or file of the site, or what is not in the site on GitHub."""
    if re.match(r"[a-z]+:|#|/", link):
        return link
    path, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    anchor = f"#{anchor}" if anchor else ""
    if target == "README.md":
        uri = "index.md"
    elif target == DOCS or target.startswith(DOCS + "/"):
        uri = target[len(DOCS) + 1 :]
        if (ROOT / target).is_dir() and files.get_file_from_path(posixpath.join(uri, "README.md")):
            uri = posixpath.join(uri, "README.md")
    else:
        uri = ""
    file = files.get_file_from_path(uri) if uri else None
    if file and not file.inclusion.is_excluded():
        return posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".") + anchor
    if target.startswith("..") or not (ROOT / target).exists():
        log.warning("%s links to %s, which does not exist", source, link)
        return link if not link.endswith(".md") else "#"
    kind = "tree" if (ROOT / target).is_dir() else "blob"
    return f"{config.repo_url}/{kind}/main/{target}{anchor}"


def on_post_page(output, page, config):
    if 'class="mermaid"' not in output:
        return output
    path = posixpath.relpath(SCRIPT, posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace("</head>", f'<script src="{path}"></script></head>', 1)


def on_post_build(config):
    # Nothing of the site is loaded from elsewhere.
    for file in Path(config.site_dir).rglob("*.html"):
        for found in re.findall(r"<(?:script|img|link rel=\"stylesheet\")[^>]+(?:src|href)=\"(https?:[^\"]+)", file.read_text("utf-8")):
            log.warning("%s loads %s", os.path.relpath(file, config.site_dir), found)
