// Reads the settings of Kafka topics: of exits (a type's handler publishes its jobs there) and of entry topics (their
// messages become jobs). Called through entry/broker_kinds.h. Makes no connection. Thread: any.
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"

namespace tocsin {

// Reads type.handler_json, a JSON object, and returns how to connect and publish there (Exit: broker/broker_kind.h).
//  - bootstrap_servers, required: "host:port,host:port". topic, required.
//  - security_protocol: plaintext, ssl, sasl_plaintext or sasl_ssl.
//  - sasl_mechanism (PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512), username and password: with the last two protocols, and
//    only with these.
// `guard`: checks every address that is connected to, also those that the cluster names; null allows all. Error
// invalid: names the field at fault, such as "handler.topic".
//
// The producer is idempotent. An attempt is done when all in-sync replicas have its message.
Result<Exit> read_kafka_exit(const BizType& type, const GuardPtr& guard);

// Reads an entry topic, a JSON object as text: the fields above; group, by default "tocsin"; dead_letter_topic, for
// messages that can never become jobs (by default these are logged and skipped). Every address is allowed, because the
// operator sets it. Error invalid as above; its field begins with `path`, such as "entry[0].".
Result<Entry> read_kafka_entry(const std::string& settings_json, const std::string& path);

}  // namespace tocsin
