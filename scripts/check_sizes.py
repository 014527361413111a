"""Sizes of C++: no function over 60 lines, no class with more than 12 data members unless its comment says why.

check_layers.py uses it. A class says why with a sentence that has the words "data members". Passive structs (settings,
rows, arguments) may have as many as they need: only members named with a trailing underscore count. A function of few
statements is a table, and as long as its rows are many.
"""
import re

MAX_FUNCTION_LINES = 60
MAX_MEMBERS = 12
MAX_STATEMENTS_OF_A_TABLE = 12

BLANKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'""", re.DOTALL)
NUMBER = re.compile(r"(?<=\d)'(?=\d)")
DIRECTIVE = re.compile(r"^[ \t]*#.*(?:\\\n.*)*", re.MULTILINE)
CLASS = re.compile(r"\b(?:class|struct|union)\b[^;(]*$")
CLASS_NAME = re.compile(r"([\w:]+)(?:\s+final)?\s*(?:(?<!:):(?!:).*)?$", re.DOTALL)
MEMBER = re.compile(r"[\w>&*\]]\s+[&*]*(\w+_)\s*(?:=|\{|\[|;|,|$|TOCSIN_GUARDED_BY|GUARDED_BY)")


def blanked(text):
    """The text with its comments, strings and directives as spaces: every other character stays where it is."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = NUMBER.sub("_", text)
    return DIRECTIVE.sub(spaces, BLANKED.sub(spaces, text))


def blocks(code):
    """(kind, head, begin of head, end of block, body at this depth) of every block of namespaces and classes."""
    stack, found, head = [], [], 0
    for match in re.finditer(r"[{};]|\b(?:public|private|protected):", code):
        at = match.start()
        if match[0] == "{":
            text = code[head:at]
            parent = stack[-1][0] if stack else "namespace"
            if parent not in ("namespace", "class"):
                kind = "inner"
            elif re.search(r"\bnamespace\b[^=;()]*$", text) or 'extern' in text and "(" not in text:
                kind = "namespace"
            elif re.search(r"\benum\b", text):
                kind = "inner"
            elif CLASS.search(re.sub(r"<[^<>]*>", "", text)):
                kind = "class"
            elif "(" in text or "[" in text:
                kind = "function"
            else:
                kind = "inner"
            stack.append((kind, text, head + len(text) - len(text.lstrip()), at))
        elif match[0] == "}":
            if stack:
                kind, text, begin, opened = stack.pop()
                found.append((kind, text.strip(), begin, opened, at))
        if not stack or stack[-1][0] in ("namespace", "class"):
            head = match.end()
    return found


def members(code, opened, end):
    """The names of the data members of a class: what is declared directly in its body."""
    body, depth, flat = code[opened + 1:end], 0, []
    for char in body:
        if char in "{(":
            depth += 1
        elif char in "})":
            depth -= 1
        flat.append(" " if depth or char in "})" else char)
    names = set()
    for declaration in "".join(flat).split(";"):
        names.update(MEMBER.findall(declaration + ";"))
    return names


def offences(text):
    """(line, what is wrong) of one file."""
    code = blanked(text)
    for kind, head, begin, opened, end in blocks(code):
        line = code.count("\n", 0, begin) + 1
        if kind == "function":
            lines = code.count("\n", begin, end) + 1
            is_table = code.count(";", opened, end) <= MAX_STATEMENTS_OF_A_TABLE
            if lines > MAX_FUNCTION_LINES and not is_table:
                yield line, f"a function of {lines} lines; {MAX_FUNCTION_LINES} at most"
        elif kind == "class":
            names = members(code, opened, end)
            above = text[:begin].rstrip("\n").split("\n\n")[-1]
            if len(names) > MAX_MEMBERS and "data members" not in above:
                name = CLASS_NAME.search(head)[1]
                yield line, f"{name} has {len(names)} data members; {MAX_MEMBERS} at most, or its comment says why"
