// The broker kinds (amqp, kafka, redis) of this build. Brokers have two uses: handlers publish due jobs to them, and
// messages of entry topics become jobs. The node calls both functions while it starts (node/node_parts.cc). Thread:
// any.
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"
#include "delivery/handler_registry.h"

namespace tocsin {

// Adds a handler kind for each broker kind to `registry`. `guard` (copied): the addresses that handlers may connect to.
// `write_job`: makes the JSON of a job, which becomes the message. REQUIRES: `clock` outlives the registry.
void add_broker_kinds(HandlerRegistry& registry, const AddressGuard& guard, const Clock& clock,
                      const BrokerKind::JobWriter& write_job);

// Parses the settings of one entry topic, a JSON text; does not connect. `index`: its position in NodeConfig::entries.
// Error invalid: a setting is wrong; the Error's field names it, such as "entry[0].url".
Result<Entry> parse_entry_topic(const std::string& settings_json, std::size_t index);

}  // namespace tocsin
