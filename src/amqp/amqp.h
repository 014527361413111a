// Reads the settings of AMQP 0-9-1 brokers such as RabbitMQ: of handlers, which publish jobs to an exchange, and of
// entry topics, which are queues whose messages become jobs. Called through entry/broker_kinds.h when settings are
// checked, and when a handler or an entry consumer is made. Makes no connection. Thread: any.
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"

namespace tocsin {

// Reads type.handler_json, a JSON object, and returns how to connect and publish there (Exit: broker/broker_kind.h).
//  - url, required: amqp://user:password@host:port/vhost. Without a user, guest and guest log in; a user without a
//    password has an empty one. By default port 5672 and vhost "/". No TLS.
//  - exchange: by default "", the broker's default exchange. routing_key: by default the name of the type.
// Connections go only to addresses that `guard` allows; null allows any. Error invalid: a field is missing, wrong or
// unknown; Error::field names it, such as `handler.url`.
//
// Messages are sent as persistent and mandatory, and the broker confirms them. An attempt is done when every queue that
// its message was routed to has it, on disk if the queue is durable. If no queue gets it, the attempt has failed and
// the job is tried again after its back-off.
Result<Exit> read_amqp_exit(const BizType& type, const GuardPtr& guard);

// Reads an entry topic, a JSON object as text: url as above, queue (it must exist before it is consumed), prefetch (how
// many unacknowledged messages the broker sends ahead: 1..10000, 500 by default). Error invalid as above; Error::field
// begins with `path`, such as `entry[0].`. The operator sets the address, so every address is allowed.
//
// A message that can never become a job is rejected without requeue: it goes to the queue's dead letter exchange, or is
// lost if the queue has none.
Result<Entry> read_amqp_entry(const std::string& settings_json, const std::string& path);

}  // namespace tocsin
