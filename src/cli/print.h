// Prints the results of commands: the server's JSON for programs, aligned human-readable text otherwise. In the text,
// what is not safe on a terminal is escaped (printable() of base/text.h), but for print_text().
#pragma once

#include <iosfwd>
#include <string>

#include "cli/rest_client.h"

namespace tocsin {

void print_json(std::ostream& out, const Json& value);  // indented by two
// The body as the server wrote it, so that no digit of a number is lost.
void print_json(std::ostream& out, const RestReply& reply);

// Warns when databases did not answer: prints a line for each member "missing" or "in_doubt" of the reply, if it is a
// list that is not empty.
void note_missing(std::ostream& out, const Json& reply);

// A value as the text of one table cell: "-" for null, text without quotes, yes or no for booleans, fractions rounded
// to three digits, anything else as JSON.
std::string cell(const Json& value);
// The member of an object, as such a text; "-" when there is none. A member whose name is that of a time, such as
// `started_at`, is shown as readable_time().
std::string cell(const Json& object, const char* key);

// A member's name to be read: blanks in place of underscores.
std::string words(const std::string& key);

// "2026-03-01 12:00:00.250Z" for an RFC 3339 UTC time, cut to milliseconds; other text as printable() writes it.
// `relative` adds " (in 14m 59s)" or " (3s ago)".
std::string readable_time(const std::string& text, bool relative);

// An object as lines of "name  value": nulls and empty lists left out, numbers "..._ms" shown as durations, times with
// their distance from now, fields of nested objects as "outer inner" (attribute and headers stay JSON), lists of
// objects as tables underneath; those with a field "message" as lines. `width`, here and below: columns of the screen.
void print_record(std::ostream& out, const Json& object, std::size_t width);

// Text, wrapped at spaces. REQUIRES: printable() or cell() has made it safe.
void print_text(std::ostream& out, const std::string& text, std::size_t width);

// A list of objects as a table with a column per key; if that does not fit, and there are three keys or more, a few
// lines per object.
void print_objects(std::ostream& out, const Json& items, std::size_t width);

}  // namespace tocsin
