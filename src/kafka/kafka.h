// Reads the settings of Kafka topics: of exits (a type's handler publishes its jobs there) and of entry topics (their
// messages become jobs). Called through entry/broker_kinds.h. Nothing connects here. Thread: any.
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"

namespace tocsin {

// Reads type.handler_json, a JSON object: bootstrap_servers ("host:port,host:port") and topic, both required;
// security_protocol (plaintext, ssl, sasl_plaintext or sasl_ssl); with the last two, and only then, sasl_mechanism
// (PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512), username and password. Error invalid: names the field at fault, as
// "handler.topic". `guard`: judges every address that is connected to, those that the cluster names included; null
// allows any.
//
// The producer is idempotent and waits for all in-sync replicas: done means that they have the message.
Result<Exit> read_kafka_exit(const BizType& type, const GuardPtr& guard);

// Reads an entry topic, a JSON object as text: the fields above, group ("tocsin" by default), dead_letter_topic (for
// messages that can never become jobs; none by default: they are logged and skipped). Error invalid as above; the field
// begins with `path`, as "entry[0].". Every address is allowed.
Result<Entry> read_kafka_entry(const std::string& settings_json, const std::string& path);

}  // namespace tocsin
