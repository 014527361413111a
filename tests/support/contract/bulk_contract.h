// The base of the contract tests of BulkStore.
#pragma once

#include "bulk/bulk_store.h"
#include "support/contract/store_fixture.h"

namespace tocsin {

class BulkContract : public StoreContract {
 protected:
  BulkRequest all_of_type(BulkAction action) const {
    BulkRequest request;
    request.action = action;
    request.filter.type_id = type_id;
    request.filter_json = R"({"biz_type": "order.unpaid"})";
    return request;
  }
  Bulk start(const BulkRequest& request, NodeId node = 1, Duration lease = kLong) {
    return start_matched(request, must(db->bulks().count(request)), node, lease);
  }
  Bulk start_matched(const BulkRequest& request, std::int64_t matched, NodeId node = 1, Duration lease = kLong) {
    return must(db->bulks().start(request, matched, node, lease, must(db->bulks().placement()).value())).value();
  }
  // Batches until it is done; how many jobs it changed in all.
  std::int64_t run(const Bulk& bulk) {
    for (int i = 0; i < 20; ++i) {
      const BulkBatch batch = must(db->bulks().run_batch(bulk, 2));
      if (batch.is_done) return batch.changed;
    }
    ADD_FAILURE() << "it does not end";
    return 0;
  }
  JobStatus status(JobId job) { return find(job).status; }
};

}  // namespace tocsin
