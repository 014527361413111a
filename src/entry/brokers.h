// The kinds of brokers that this build has.
#pragma once

#include "broker/broker_kind.h"
#include "broker/entry_source.h"
#include "delivery/handlers.h"

namespace tocsin {

// Their handler kinds, which connect where the guard lets them.
void add_broker_kinds(HandlerRegistry& registry, const AddressGuard& guard, const Clock& clock,
                      const BrokerKind::JobWriter& write_job);

// One of NodeConfig::entries. Error invalid with the field at fault, as "entry[0].url".
Result<Entry> read_entry(const std::string& settings_json, std::size_t index);

}  // namespace tocsin
