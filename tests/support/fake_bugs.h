// FakeBugs: mistakes that a test plants in FakeDatabase, a database in memory. The contract suite and the simulation
// must fail with each of them: that proves that they would notice it in a real store. kFakeBugs names them.
#pragma once

namespace tocsin {

struct FakeBugs {
  bool claims_any_status = false;       // a claim takes a running job whose lease still holds
  bool claims_early = false;            // a claim does not compare fire_at with the clock
  bool forgets_attempts = false;        // a claim does not count its attempt
  bool ignores_max_attempts = false;    // a claim does not ask whether attempts are left
  bool finish_ignores_token = false;    // any claim's result is written
  bool cancels_running = false;         // a cancel takes a running job
  bool ignores_limit = false;           // claim_due takes everything that is due
  bool ignores_locks = false;           // rows that other transactions have locked are not skipped
  bool same_token_again = false;        // the token does not depend on the claim's seed
  bool release_counts = false;          // a released claim's attempt stays counted
  bool expiry_without_error = false;    // an expired lease leaves no error
  bool retry_at_once = false;           // a retry ignores its delay
  bool forgets_the_deadline = false;    // what was claimed is due before its deadline again once the clock is set back
  bool loses_retries = false;           // a retried job vanishes
  bool create_ignores_key = false;      // idempotency keys are stored, not looked at
  bool lease_outlives_its_end = false;  // a consumer may finish after its lease
  bool half_rollback = false;           // a refused all_or_nothing call leaves its first job behind
  bool answers_twice = false;           // two cancels of one job in one call share the answer of the first
  bool keeps_rolled_back_keys = false;  // a transaction that is rolled back still holds its idempotency keys
  bool shows_uncommitted = false;       // what an open transaction has created can be seen and claimed
};

struct FakeBugName {
  const char* name;
  bool FakeBugs::*bug;
};

inline constexpr FakeBugName kFakeBugs[] = {
    {"claims_any_status", &FakeBugs::claims_any_status},
    {"claims_early", &FakeBugs::claims_early},
    {"forgets_attempts", &FakeBugs::forgets_attempts},
    {"ignores_max_attempts", &FakeBugs::ignores_max_attempts},
    {"finish_ignores_token", &FakeBugs::finish_ignores_token},
    {"cancels_running", &FakeBugs::cancels_running},
    {"ignores_limit", &FakeBugs::ignores_limit},
    {"ignores_locks", &FakeBugs::ignores_locks},
    {"same_token_again", &FakeBugs::same_token_again},
    {"release_counts", &FakeBugs::release_counts},
    {"expiry_without_error", &FakeBugs::expiry_without_error},
    {"retry_at_once", &FakeBugs::retry_at_once},
    {"forgets_the_deadline", &FakeBugs::forgets_the_deadline},
    {"loses_retries", &FakeBugs::loses_retries},
    {"create_ignores_key", &FakeBugs::create_ignores_key},
    {"lease_outlives_its_end", &FakeBugs::lease_outlives_its_end},
    {"half_rollback", &FakeBugs::half_rollback},
    {"answers_twice", &FakeBugs::answers_twice},
    {"keeps_rolled_back_keys", &FakeBugs::keeps_rolled_back_keys},
    {"shows_uncommitted", &FakeBugs::shows_uncommitted},
};

}  // namespace tocsin
