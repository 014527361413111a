// Prints the results of commands: the server's JSON for programs, otherwise aligned human-readable text. In the text
// every function but print_text() escapes characters that are not safe on a terminal (printable() of base/text.h).
// `width`: columns of the screen. Thread: any.
#pragma once

#include <iosfwd>
#include <string>

#include "cli/rest_client.h"

namespace tocsin {

void print_json(std::ostream& out, const Json& value);  // indented by two
// The body as the server wrote it, so that no digit of a number is lost.
void print_json(std::ostream& out, const RestReply& reply);

// Warns that the reply is incomplete: prints a line for each of its members "missing" and "in_doubt" that is a
// non-empty list (names of databases that did not answer, or whose answer to a write was lost). Returns whether it is.
bool note_missing(std::ostream& out, const Json& reply);

// A value as the text of one table cell: "-" for null, text without quotes, "yes" or "no" for booleans, fractions
// rounded to three digits, any other value as JSON.
std::string cell(const Json& value);
// A member of an object, as cell(); "-" if there is no such member. If the name is one of a time, such as `started_at`,
// the text is readable_time().
std::string cell(const Json& object, const char* key);

// The name of a member for display: blanks in place of underscores.
std::string words(const std::string& key);

// "2026-03-01 12:00:00.250Z" for an RFC 3339 time in UTC, cut to milliseconds; any other text as printable() writes it.
// `relative`: adds the distance from now, " (in 14m 59s)" or " (3s ago)".
std::string readable_time(const std::string& text, bool relative);

// Prints an object as lines of "name  value".
// - Nulls and empty lists are left out. Numbers named "..._ms" are shown as durations, times with their distance from
//   now.
// - Members of a nested object have the name "outer inner"; `attribute` and `headers` stay JSON.
// - Lists of objects follow as tables; lists whose objects have a field "message" follow as lines.
void print_record(std::ostream& out, const Json& object, std::size_t width);

// Prints text, wrapped at spaces. REQUIRES: printable() or cell() has made the text safe.
void print_text(std::ostream& out, const std::string& text, std::size_t width);

// Prints a list of objects as a table with a column per key. If the table does not fit and has three columns or more,
// prints a few lines per object.
void print_objects(std::ostream& out, const Json& items, std::size_t width);

}  // namespace tocsin
