// Prints the results of commands: the server's JSON for programs, aligned human-readable text otherwise. Control
// characters are escaped.
#pragma once

#include <iosfwd>
#include <string>

#include "cli/rest_client.h"

namespace tocsin {

void print_json(std::ostream& out, const Json& value);
// As the server wrote it.
void print_json(std::ostream& out, const RestReply& reply);

// Warns when an answer is incomplete because databases are down: its members "missing" and "in_doubt".
void note_missing(std::ostream& out, const Json& reply);

// A value as the text of one table cell: "-" for null, text without quotes, times without T, yes or no for booleans,
// fractions rounded to three digits, anything else as JSON.
std::string cell(const Json& value);
// The member of an object, as such a text; "-" when there is none.
std::string cell(const Json& object, const char* key);

// "2026-03-01 12:00:00.250Z" for an RFC 3339 UTC time, other text as it is; `relative` adds " (in 14m 59s)" or " (3s
// ago)".
std::string readable_time(const std::string& text, bool relative);

// An object as lines of "name  value": nulls and empty lists left out, numbers "..._ms" shown as durations, times with
// their distance from now, fields of nested objects as "outer inner" (attribute and headers stay JSON), lists of
// objects as tables underneath; those with a field "message" as lines. `width`, here and below: columns of the screen.
void print_record(std::ostream& out, const Json& object, std::size_t width);

// Text, wrapped at spaces.
void print_text(std::ostream& out, const std::string& text, std::size_t width);

// A list of objects as a table with a column per key; if that does not fit, a few lines per object.
void print_objects(std::ostream& out, const Json& items, std::size_t width);

}  // namespace tocsin
