// Kafka topics as exits and entries.
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"

namespace tocsin {

// Settings of a handler: bootstrap_servers ("host:port,host:port"), topic, and to log in security_protocol,
// sasl_mechanism, username and password. Error invalid with the field at fault. The guard judges every address that is
// connected to, those that the cluster names included.
//
// The producer is idempotent and waits for all in-sync replicas: done means that they have the message.
Result<Exit> read_kafka_exit(const BizType& type, const GuardPtr& guard);

// Settings of an entry: those, and group ("tocsin" by default), dead_letter_topic (none by default: bad messages are
// logged and skipped). Fields at fault begin with `path`.
Result<Entry> read_kafka_entry(const std::string& settings_json, const std::string& path);

}  // namespace tocsin
