#!/usr/bin/env python3
"""Writes a C++ file that holds the files of the dashboard, plain and gzipped.

embed_dashboard.py OUT FOLDER. All assets lie under one folder named by the hash of all of them, so that modules import
each other by relative paths that never change, and browsers may keep them for ever. index.html names that folder where
it says {{assets}}. The output depends on the contents alone.
"""
import gzip
import hashlib
import pathlib
import sys

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
PIECE = 2000  # bytes of one string literal


def literal(data):
    pieces = (data[at:at + PIECE] for at in range(0, max(len(data), 1), PIECE))
    lines = ('"' + "".join(f"\\{byte:03o}" for byte in piece) + '"' for piece in pieces)
    return "{" + "\n".join(lines) + f", {len(data)}}}"


def main():
    out, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in CONTENT_TYPES:
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name} {len(data)}\n".encode() + data)
    assets = f"assets/{digest.hexdigest()[:16]}"

    code = ["// Generated from src/dashboard/.", '#include "api/dashboard.h"', "", "namespace tocsin {", "",
            "const std::vector<DashboardFile>& dashboard_files() {",
            "  static const std::vector<DashboardFile> all = {"]
    total = 0
    for name, data in files.items():
        is_page = name == "index.html"
        if is_page:
            data = data.replace(b"{{assets}}", assets.encode())
        path = "/" if is_page else f"/{assets}/{name}"
        etag = hashlib.sha256(data).hexdigest()[:16]
        code.append(f'{{"{name}", "{path}", "{CONTENT_TYPES[pathlib.Path(name).suffix]}", "\\"{etag}\\"",')
        code.append(literal(data) + ",")
        packed = gzip.compress(data, 9, mtime=0)
        total += len(packed)
        code.append(literal(packed) + "},")
    code += ["  };", "  return all;", "}", "", "}  // namespace tocsin", ""]
    out.write_text("\n".join(code), encoding="utf-8")
    print(f"dashboard: {len(files)} files, {total} bytes gzipped")


main()
