// Turns due into claimed: one store call per batch, won by exactly one node. What was not won is dropped and counted.
// Instant types are claimed, run and finished in that one call; jobs of pull types go straight to the consumers for
// whom they were claimed.
//
// Thread: owner only, except the inputs it shares (EngineShared). Several claimers work side by side on one engine.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/stage.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class Claimer final : public Stage {
 public:
  // `seed`: of its own random numbers, which become claim tokens: must differ between claimers, nodes and process
  // starts.
  Claimer(EngineShared& shared, JobStore& store, std::uint64_t seed, ClaimerRole role = ClaimerRole::primary)
      : shared_(shared), store_(store), random_(seed), role_(role) {}

  const char* name() const override { return "claimer"; }
  MonoTime step(MonoTime now) override;

  // It holds a claim whose outcome it does not know yet.
  bool has_unresolved() const { return unresolved_.has_value(); }
  // It holds jobs that its next step hands to their consumers.
  bool has_answers() const { return won_.has_value(); }

 private:
  // A claim that was sent. Kept while its answer is in doubt: the rows may be ours.
  struct Sent {
    DueBatch batch;
    ClaimTicket ticket;
    MonoTime at{};
    bool is_slow = false;                        // its answer may take longer than the start window
    std::shared_ptr<const TypeCatalog> catalog;  // the leases asked for: types may change before the answer
    std::map<TypeId, std::size_t> slots;         // taken of the limiter
    // Pull, of a backlog: won from the lanes before. Jobs that come back together lie in many lanes.
    std::vector<ClaimedJob> gathered;
  };

  // Won for consumers: their leases go on while the claim's answer is on its way.
  struct Won {
    DueBatch batch;
    std::vector<ClaimedJob> jobs;
  };

  MonoTime fire(MonoTime now, DueBatch batch);
  void put_back_unfired(const DueBatch& batch, const std::vector<Fired>& fired);
  void note_pace(MonoTime now);
  MonoTime claim(MonoTime now, DueBatch batch);
  bool must_last(const DueBatch& batch, const TypeCatalog& catalog) const;
  MonoTime send(MonoTime now, Sent sent);
  MonoTime resolve(MonoTime now);
  // `asked`: before the statement that told of the claim was sent.
  void accept(Sent sent, MonoTime asked, std::vector<ClaimedJob> won);
  // Goes on with another lane for consumers who want more than that one had. False: there is none, or no time.
  bool gather(Sent& sent, MonoTime asked, std::vector<ClaimedJob>& won);
  void hand_out(MonoTime now, const DueBatch& batch, std::vector<ClaimedJob> won);
  void hand_over(const Poll& poll, std::vector<ClaimedJob> jobs);
  void add_lease(ClaimedJob& claimed, Duration ttr) const;
  void send_back(const std::vector<PollShare>& shares);
  void give_back(ClaimedJob claimed);
  void after_batch(MonoTime asked, const DueBatch& batch, std::vector<JobId> won);
  void forget_or_retry(MonoTime asked, const DueBatch& batch, std::vector<JobId> won);
  void give_up(const DueBatch& batch);

  EngineShared& shared_;
  JobStore& store_;
  Random random_;
  const ClaimerRole role_;
  std::optional<Sent> unresolved_;
  std::optional<Sent> gathering_;
  std::optional<Won> won_;
  std::optional<MonoTime> claimed_at_;  // the claim before this step was sent
  bool is_slow_ = false;                // it took long
};

}  // namespace tocsin
