// The broker kinds (amqp, kafka, redis) that this build has, for jobs that are published (handlers) and for messages
// that become jobs (entry topics).
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"
#include "delivery/handlers.h"

namespace tocsin {

// Adds a handler kind for each broker kind. Handlers connect only to addresses that `guard` allows; `write_job` makes
// the text of the message.
void add_broker_kinds(HandlerRegistry& registry, const AddressGuard& guard, const Clock& clock,
                      const BrokerKind::JobWriter& write_job);

// Reads NodeConfig::entries[index]: an entry topic as JSON. Error invalid: names the field at fault, as "entry[0].url".
Result<Entry> read_entry(const std::string& settings_json, std::size_t index);

}  // namespace tocsin
