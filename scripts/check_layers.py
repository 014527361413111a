#!/usr/bin/env python3
"""Checks the rules that no compiler checks: who includes whom, what the pure layers must not call, sizes, house rules.

check_layers.py --diagram [ROOT] prints the layers and what each includes; --write puts that into docs/architecture.md,
and makes the index of docs/adr.
check_layers.py [ROOT]. Prints one line per offence, `file:line: what is wrong`; exit 1 when there are any. The layers
and what stands below each are read from CMakeLists.txt, where tocsin_layer() links them.
"""
import pathlib
import re
import sys

from check_docs import check_documents, write_index
from check_sizes import offences as size_offences

# Library -> where its headers may be included. What is in no pattern is the standard library, or the system's.
LIBRARIES = {
    r"pqxx\b|libpq": {"postgres"},
    r"spdlog/|fmt/": {"metrics", "entry", "service", "multidb", "maintenance", "node", "cli"},
    r"prometheus/": {"metrics", "node"},
    r"httplib\.h": {"cli"},
    r"CLI/": {"cli"},
    r"toml\+\+/": {"api", "node", "cli"},
    r"nlohmann/": {"api", "delivery", "broker", "entry", "service", "multidb", "node", "cli", "postgres"},
    r"boost/": {"api", "delivery", "broker", "service", "node"},
    r"amqp": {"amqp"},
    r"librdkafka/": {"kafka"},
    r"hiredis/": {"redis"},
    r"openssl/": {"core", "api", "delivery"},
}

# The layers that a simulation runs in one thread under a clock of its own, and what would break that.
PURE_LAYERS = {"core", "admission", "pipeline", "cluster"}
IMPURE = {
    r"\b(system|steady|high_resolution)_clock::now\b|\b(clock_gettime|gettimeofday)\b": "reads a clock; take the time",
    r"\bsleep_(for|until)\b|\b(u|nano)?sleep\(|\bwait_(for|until)\b": "waits; return the next wake-up instead",
    r"\bstd::(j?thread|async)\b|\bpthread_": "starts a thread; stages are stepped by their owner",
    r"#\s*include\s*<(sys/(socket|epoll)|netinet/|arpa/|poll)": "touches sockets",
    r"\bstd::(random_device|rand)\b|\brandom_device\b": "draws randomness of its own; take the injected generator",
    r"\bgetenv\b": "reads the environment; take it as configuration",
}

MAX_LINES = {".h": 250, ".cc": 450, ".py": 450, ".sh": 450, "": 450, ".js": 450}
MAX_TEST_LINES = 500
MAX_COLUMNS = 120
MAX_TEST_NAME = 60

SLEEPS = re.compile(r"\bsleep_(for|until)\b|\b(usleep|nanosleep)\(")
TEST_NAME = re.compile(r"\bTEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)")
SKIPS = re.compile(r"\bGTEST_SKIP\b|\bDISABLED_")
LEFT_OVER = re.compile(r"\b(FIX" r"ME|XX" r"X|HA" r"CK|TO" r"DO)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|work|Users)/")
TICKET = re.compile(r"\b(issue|ticket|bug|pull request)s? #?\d+\b|(^|[\s(])#\d{1,5}\b(?!\.)", re.IGNORECASE)
RECORD = re.compile(r"\b(?:ADR |docs/adr/)(\d{4})\b")
RAW_BEGIN, RAW_END = re.compile(r'R"\w*\('), re.compile(r'\)\w*"')
INCLUDE = re.compile(r"#\s*include\s*([<\"])([^>\"]+)[>\"]")

SQL_FOLDER = pathlib.Path("src/postgres/sql")
# A comment, a raw string, a string or a character of C++.
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)+'""", re.DOTALL)
SQL_WORDS = "SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|CREATE|ALTER|DROP|SET|LOCK|FROM|WHERE|JOIN|UNION|ORDER BY|AND"
SQL_BEGINS = re.compile(rf"\s*\(?({SQL_WORDS}) ")
GLUED = re.compile(r"\s*\)?\s*\+")  # of what follows a string

PROGRAMS = {"bench", "bench_core", "replay"}  # of tests/: they measure, and so may pace themselves
FOLDERS = ["src", "include", "tests", "scripts", "migrations", "docs", ".ci"]
CODE = {".h", ".cc"}
SCRIPTS = {".py", ".sh", ""}
TEXT = CODE | SCRIPTS | {".md", ".sql", ".txt", ".cmake", ".js", ".html", ".css", ".toml", ".json"}


class Checker:
    """Collects offences."""

    def __init__(self, root):
        self.root = root
        self.offences = []
        self.below = read_layers(root / "CMakeLists.txt")
        cmake = (root / "CMakeLists.txt").read_text(encoding="utf-8")
        self.logs = set(re.findall(r"^tocsin_layer\((\w+) [^)]*\bspdlog::spdlog\b", cmake, re.MULTILINE))
        self.records = {path.name[:4] for path in (root / "docs" / "adr").glob("[0-9]*.md")}

    def complain(self, path, line, what):
        self.offences.append(f"{path.relative_to(self.root)}:{line}: {what}")

    def check_file(self, path):
        lines = path.read_text(encoding="utf-8").splitlines()
        self.check_size(path, lines)
        self.check_house_rules(path, lines)
        if path.suffix in CODE:
            self.check_code(path, lines)

    def check_size(self, path, lines):
        limit = MAX_LINES.get(path.suffix)
        if path.relative_to(self.root).parts[0] == "tests":
            limit = limit and max(limit, MAX_TEST_LINES)
        if limit and len(lines) > limit:
            self.complain(path, limit + 1, f"{len(lines)} lines; {limit} at most: it holds more than one thing")
        if path.suffix not in CODE | SCRIPTS:
            return
        is_sql = False  # inside a raw string, which no formatter may wrap
        for number, line in enumerate(lines, 1):
            is_sql = is_sql or RAW_BEGIN.search(line) is not None
            if len(line) > MAX_COLUMNS and not is_sql:
                self.complain(path, number, f"{len(line)} columns; {MAX_COLUMNS} at most")
            if RAW_END.search(line):
                is_sql = False

    def check_house_rules(self, path, lines):
        for number, line in enumerate(lines, 1):
            if LEFT_OVER.search(line):
                self.complain(path, number, "a note to oneself; do it, or write down why not")
            if MACHINE_PATH.search(line):
                self.complain(path, number, "a path of one machine")
            for record in RECORD.findall(line):
                if record not in self.records:
                    self.complain(path, number, f"there is no decision record {record}")
            if path.suffix != ".css" and path.suffix != ".html" and TICKET.search(line):
                self.complain(path, number, "a ticket number; say the reason itself")

    def check_code(self, path, lines):
        top, *rest = path.relative_to(self.root).parts
        layer = rest[0] if top == "src" and len(rest) > 1 else None
        if layer:
            self.check_glued_sql(path, "\n".join(lines))
        if layer and layer not in self.below:
            self.complain(path, 1, f"src/{layer} is no layer of CMakeLists.txt")
            return
        if path.suffix == ".h":
            self.check_header(path, lines)
        for number, what in size_offences("\n".join(lines)):
            self.complain(path, number, what)
        for number, line in enumerate(lines, 1):
            if match := INCLUDE.search(line):
                self.check_include(path, number, top, layer, is_own=match[1] == '"', name=match[2])
            code = line.split("//")[0]
            if top == "tests" and rest[0] not in PROGRAMS and SLEEPS.search(code):
                self.complain(path, number, "waits by sleeping; wait for an event, or step the clock")
            if top == "tests" and SKIPS.search(code):
                self.complain(path, number, "a test that can be skipped proves nothing")
            if (match := TEST_NAME.search(code)) and len(match[1]) > MAX_TEST_NAME:
                self.complain(path, number, f"a test name of {len(match[1])} letters; {MAX_TEST_NAME} at most")
            if layer in PURE_LAYERS:
                for pattern, what in IMPURE.items():
                    if re.search(pattern, code):
                        self.complain(path, number, f"src/{layer} {what}")

    def check_header(self, path, lines):
        if not lines or not lines[0].startswith("//"):
            self.complain(path, 1, "a header begins with a sentence that says what it is")
        if "#pragma once" not in lines:
            self.complain(path, 1, "no #pragma once")

    def check_glued_sql(self, path, text):
        """Statements in C++ are of one line and whole; others are files of their own."""
        for match in TOKEN.finditer(text):
            literal = match[3] if match[2] is None else match[2]
            if literal is not None and SQL_BEGINS.match(literal) and GLUED.match(text, match.end()):
                number = text.count("\n", 0, match.start()) + 1
                self.complain(path, number, f"a statement glued from strings; those are files of {SQL_FOLDER}")
        groups = []  # strings that are one expression: no separator stands between them
        last = None
        for match in TOKEN.finditer(text):
            literal = match[3] if match[2] is None else match[2]
            if literal is None:
                continue
            if last is None or re.search(r"[;{},]", TOKEN.sub("", text[last:match.start()])):
                groups.append([])
            groups[-1].append((literal, match.start(), match.end()))
            last = match.end()
        for group in groups:
            begin, end = group[0][1], group[-1][2]
            if "\n" in text[begin:end] and any(SQL_BEGINS.match(literal) for literal, _, _ in group):
                number = text.count("\n", 0, begin) + 1
                self.complain(path, number, f"a statement of several lines; those are files of {SQL_FOLDER}")

    def check_statements(self):
        """Every file of SQL says what it is, is one statement, and is used."""
        folder = self.root / SQL_FOLDER
        names = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.sql")}
        code = "\n".join(path.read_text(encoding="utf-8") for path in (self.root / "src").rglob("*.cc"))
        texts = {name: path.read_text(encoding="utf-8") for name, path in names.items()}
        used = set(re.findall(r'"([\w/]+)"', code))
        used |= {"parts/" + key for text in texts.values() for key in re.findall(r"\{\{(\w+)", text)}
        for name, path in names.items():
            if not texts[name].startswith("-- "):
                self.complain(path, 1, "a statement begins with a comment that says what it does")
            head = re.match(r"(?:--.*\n)*", texts[name])[0]
            if not name.startswith("parts/") and "Index: " not in head:
                self.complain(path, 1, "its comment names the index that it needs: `-- Index:`, or `Index: none`")
            bare = re.sub(r"\$(\w*)\$.*?\$\1\$", "", re.sub("--.*", "", texts[name]), flags=re.DOTALL)
            if ";" in bare:
                self.complain(path, 1, "more than one statement")
            if name not in used:
                self.complain(path, 1, "nothing uses this statement")

    def check_include(self, path, number, top, layer, is_own, name):
        if is_own and not (top == "include" or layer):
            return  # tests and main.cc may see every layer
        if is_own:
            target = name.split("/")[0] if "/" in name else None
            allowed = {"tocsin"} | ({layer} | self.below[layer] if layer else set())
            if target is None:
                self.complain(path, number, f'"{name}" names no layer; write "layer/{name}"')
            elif target not in allowed:
                where = f"src/{layer}" if layer else "include/tocsin"
                self.complain(path, number, f"{where} may not include {target}/, only {', '.join(sorted(allowed))}")
        elif top == "include" or layer:
            for pattern, layers in LIBRARIES.items():
                if re.match(pattern, name) and layer not in layers:
                    where = ", ".join(f"src/{each}" for each in sorted(layers))
                    self.complain(path, number, f"<{name}> belongs in {where} only")
                    break
            if name.startswith("spdlog/") and layer not in self.logs:
                self.complain(path, number, f"link spdlog::spdlog to {layer}, or its logger is another one")


def read_layers(cmake):
    """Layer -> all layers below it."""
    linked = {}
    for name, rest in re.findall(r"^ *tocsin_layer\((\w+) ([^)]*)\)", cmake.read_text(encoding="utf-8"), re.MULTILINE):
        linked[name] = set(re.findall(r"\btocsin_(\w+)", rest))

    def all_below(name):
        if name not in linked:
            return set()  # a library that is no layer
        return linked[name].union(*(all_below(each) for each in linked[name]))

    return {name: all_below(name) for name in linked}


DIAGRAM = re.compile(r"(<!-- diagram: [^>]* -->\n+```\n)(.*?)(```\n)", re.DOTALL)
DIAGRAM_PAGE = pathlib.Path("docs/architecture.md")
DIAGRAM_COLUMNS = 96


def includes(root, below):
    """Layer -> the layers whose headers it includes, without those that one of them includes anyway."""
    direct = {}
    for layer in below:
        text = "\n".join(path.read_text(encoding="utf-8") for path in (root / "src" / layer).rglob("*.[hc]*"))
        seen = {match[2].split("/")[0] for match in INCLUDE.finditer(text) if match[1] == '"'}
        direct[layer] = seen & below[layer]  # what is above is an offence of its own

    def reach(layer):
        return direct[layer].union(*(reach(each) for each in direct[layer]))

    return {layer: seen - set().union(*(reach(each) for each in seen)) for layer, seen in direct.items()}


def diagram(root):
    """The layers as a picture: a row per height above the bottom, `layer > what it includes`."""
    direct = includes(root, read_layers(root / "CMakeLists.txt"))

    def height(layer):
        return 1 + max((height(each) for each in direct[layer]), default=-1)

    rows = []
    for level in range(max(map(height, direct)), -1, -1):
        row = "|"
        for layer in sorted(each for each in direct if height(each) == level):
            cell = f" {layer} > {' '.join(sorted(direct[layer]))} |" if direct[layer] else f" {layer} |"
            if len(row + cell) > DIAGRAM_COLUMNS:
                rows.append(row)
                row = "|"
            row += cell
        rows += [row, ""]
    rule = "+" + "-" * (max(map(len, rows)) - 2) + "+\n"
    lines = [row[:-1].ljust(len(rule) - 2) + "|\n" if row else rule for row in rows]
    return rule + "".join(lines)


def write_diagram(root):
    page = root / DIAGRAM_PAGE
    text = DIAGRAM.sub(lambda match: match[1] + diagram(root) + match[3], page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


def check_diagram(checker):
    page = checker.root / DIAGRAM_PAGE
    found = DIAGRAM.search(page.read_text(encoding="utf-8"))
    if not found or found[2] != diagram(checker.root):
        checker.complain(page, 1, "the diagram of layers is not current: scripts/check_layers.py --write")


def main():
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    if "--diagram" in sys.argv:
        print(diagram(root), end="")
        return
    if "--write" in sys.argv:
        write_diagram(root)
        write_index(root)
        return
    checker = Checker(root)
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*"))]
    files += [*sorted(root.glob("*.md")), root / "CMakeLists.txt"]
    files = [path for path in files if path.is_file() and path.suffix in TEXT and "__pycache__" not in path.parts]
    for path in files:
        checker.check_file(path)
    check_documents(checker)
    check_diagram(checker)
    checker.check_statements()
    print(*checker.offences, sep="\n", end="\n" if checker.offences else "")
    print(f"{len(files)} files, {len(checker.offences)} offences")
    sys.exit(1 if checker.offences else 0)


main()
