// The broker kinds (amqp, kafka, redis) that this build has, for jobs that are published (handlers) and for messages
// that become jobs (entry topics). The node calls both functions while it starts.
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"
#include "delivery/handler_registry.h"

namespace tocsin {

// Adds a handler kind for each broker kind. Handlers connect only to addresses that `guard` (copied) allows;
// `write_job` makes the JSON of a job for its message. REQUIRES: `clock` outlives the registry.
void add_broker_kinds(HandlerRegistry& registry, const AddressGuard& guard, const Clock& clock,
                      const BrokerKind::JobWriter& write_job);

// Parses the settings of one entry topic, a JSON text, without connecting. `index`: its position in
// NodeConfig::entries. Error invalid: its field is the one at fault, such as "entry[0].url".
Result<Entry> parse_entry_topic(const std::string& settings_json, std::size_t index);

}  // namespace tocsin
