"""Checks the documents: width, the first paragraph, links, cited files and tests. check_layers.py calls it.

Prose is wrapped at 100 columns; tables, code and what cannot be broken may be wider. Every page begins with one
sentence of what it is for and for whom: pages under docs/ with "For ...:".
"""
from fnmatch import fnmatchcase
import re

MAX_COLUMNS = 100
FENCE = re.compile(r"^\s*```")
RECORD = re.compile(r"^\d{4}-")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)(#[^)]*)?\)")
CITED_FILE = re.compile(r"`((?:src|include|tests|scripts|migrations)/[\w./-]*\w)`")
CITED_TEST = re.compile(r"`([A-Z]\w+\.[A-Z]\w+)`")
# Of fairness.md also whole suites, and further tests of the suite named before.
CITED_BOUND = re.compile(r"`((?:[A-Z]\w+\.)?[A-Z]\w+\*?|[A-Z]\w+\.\*)`")
TEST = re.compile(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)


INDEX = """# Decision records

For people who change Tocsin: decisions with the figures that decided them. Each record has a
situation, a decision, its consequences, and what was tried and left. Numbers are never used twice;
a missing one was merged into another record. `scripts/check_layers.py --write` makes this table.

| number | decision |
|---|---|
"""
SECTIONS = ["## Situation", "## Decision", "## Consequences"]


def index_of_records(root):
    """The text of docs/adr/README.md: a line per record."""
    rows = []
    for path in sorted((root / "docs" / "adr").glob("[0-9]*.md")):
        number, _, title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").partition(": ")
        rows.append(f"| [{number}]({path.name}) | {title} |\n")
    return INDEX + "".join(rows)


def write_index(root):
    (root / "docs" / "adr" / "README.md").write_text(index_of_records(root), encoding="utf-8")


def check_records(checker):
    folder = checker.root / "docs" / "adr"
    for path in sorted(folder.glob("[0-9]*.md")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if not re.match(rf"# {path.name[:4]}: \S", lines[0]):
            checker.complain(path, 1, f'the title is "# {path.name[:4]}: <the decision>"')
        for section in SECTIONS:
            if section not in lines:
                checker.complain(path, 1, f'a record has a section "{section}"')
    index = folder / "README.md"
    if index.read_text(encoding="utf-8") != index_of_records(checker.root):
        checker.complain(index, 1, "the index of records is not current: scripts/check_layers.py --write")


def check_documents(checker):
    """Complains to the checker about every document that breaks a rule."""
    check_records(checker)
    pages = [*sorted(checker.root.glob("*.md")), *sorted((checker.root / "docs").rglob("*.md"))]
    tests = known_tests(checker.root)
    for path in pages:
        lines = path.read_text(encoding="utf-8").splitlines()
        prose = list(prose_lines(lines))
        check_width(checker, path, prose)
        if not RECORD.match(path.name):
            check_beginning(checker, path, lines)
        for number, line in enumerate(lines, 1):
            check_citations(checker, path, number, line, tests)
        if path.name == "security.md":
            check_claims(checker, path, lines)


def prose_lines(lines):
    """(number, line) of what is neither a table nor code."""
    is_code = False
    for number, line in enumerate(lines, 1):
        if FENCE.match(line):
            is_code = not is_code
        elif not is_code and not line.startswith("|"):
            yield number, line


def check_width(checker, path, prose):
    for number, line in prose:
        can_break = " " in line.strip().removeprefix("- ")
        if len(line) > MAX_COLUMNS and can_break:
            checker.complain(path, number, f"{len(line)} columns; {MAX_COLUMNS} at most in documents")


def check_beginning(checker, path, lines):
    if not lines or not lines[0].startswith("# "):
        checker.complain(path, 1, "a page begins with its title")
        return
    first = next((line for line in lines[1:] if line), "")
    is_guide = "docs" in path.relative_to(checker.root).parts
    if is_guide and not first.startswith("For "):
        checker.complain(path, 3, 'a page begins with one sentence "For <whom>: <what it is for>."')
    if not is_guide and not re.search(r"\b[Ff]or\b", " ".join(lines[1:6])):
        checker.complain(path, 3, "the first paragraph says for whom the page is")


def check_citations(checker, path, number, line, tests):
    for target, _ in LINK.findall(line):
        if not (path.parent / target).exists():
            checker.complain(path, number, f"the link leads nowhere: {target}")
    for cited in CITED_FILE.findall(line):
        if not (checker.root / cited).exists() and not list(checker.root.glob(cited + ".*")):
            checker.complain(path, number, f"there is no file {cited}")
    for cited in CITED_TEST.findall(line):
        if cited not in tests:
            checker.complain(path, number, f"there is no test {cited}")
    if path.name == "fairness.md" and line.startswith("| ") and not line.startswith("| guarantee"):
        check_bound(checker, path, number, line, tests)


def check_claims(checker, path, lines):
    """Each item of a list is a claim, and cites a test."""
    items = re.finditer(r"^- .*?(?=^- |^$|\Z)", "\n".join(lines), re.MULTILINE | re.DOTALL)
    for item in items:
        if not CITED_TEST.search(item[0]):
            number = "\n".join(lines)[:item.start()].count("\n") + 1
            checker.complain(path, number, "a claim without a test")


def check_bound(checker, path, number, line, tests):
    """Each guarantee names a test in its last column, and every test that it names exists."""
    cited = CITED_BOUND.findall(line.rstrip(" |").rpartition("|")[2])
    if not cited:
        checker.complain(path, number, "a guarantee without a test")
    for name in cited:
        pattern = name if "." in name else "*." + name
        if not any(fnmatchcase(test, pattern) for test in tests):
            checker.complain(path, number, f"there is no test {name}")


def known_tests(root):
    tests = set()
    for source in (root / "tests").rglob("*.cc"):
        for suite, name in TEST.findall(source.read_text(encoding="utf-8")):
            tests.add(f"{suite}.{name}")
    return tests
