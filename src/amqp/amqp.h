// AMQP 0-9-1 brokers such as RabbitMQ: exchanges as exits, queues as entries.
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"

namespace tocsin {

// Settings of a handler: url (amqp://user:password@host:port/vhost), exchange ("" is the default one), routing_key (the
// name of the type by default). Error invalid with the field at fault.
//
// Messages are persistent, mandatory, and confirmed by the broker: done means that every queue they were routed to has
// them, on disk where the queue is durable, and that there was at least one queue.
Result<Exit> read_amqp_exit(const BizType& type, const GuardPtr& guard);

// Settings of an entry: url, queue (which must exist), prefetch (1..10000, 500 by default). Fields at fault begin with
// `path`. Bad messages are rejected without requeue, so that the queue's dead letter exchange gets them.
Result<Entry> read_amqp_entry(const std::string& settings_json, const std::string& path);

}  // namespace tocsin
