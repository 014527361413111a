#include "api/shared_answers.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class SharedAnswersTest : public testing::Test {
 public:
  // The status that the caller has been given so far; 0: none.
  std::shared_ptr<int> ask(const std::string& target, int max_age_s = 1, bool may_manage = false) {
    auto status = std::make_shared<int>(0);
    auto call = std::make_shared<Call>(
        Call{{}, {}, {}, Responder([status](const HttpResponse& r) { *status = r.status; }), false});
    call->request.target = target;
    call->request.max_age_s = max_age_s;
    call->may_manage = may_manage;
    handler(call);
    return status;
  }
  void answer(std::size_t i, HttpResponse response = {200, "text/plain", "x", {}}) {
    asked.at(i)->respond(std::move(response));
  }

  SharedAnswers::SteadyTime now{};
  std::vector<CallPtr> asked;  // what reached the handler
  SharedAnswers shared{[this] { return now; }};
  SharedAnswers::Handler handler = shared.share([this](const CallPtr& call) { asked.push_back(call); });
};

TEST_F(SharedAnswersTest, FiftyReadersCostOneRead) {
  std::vector<std::shared_ptr<int>> readers;
  for (int i = 0; i < 50; ++i) readers.push_back(ask("/v1/stats"));
  ASSERT_EQ(asked.size(), 1U);
  answer(0);
  for (const auto& status : readers) EXPECT_EQ(*status, 200);
  now += 900ms;
  EXPECT_EQ(*ask("/v1/stats"), 200);
  EXPECT_EQ(asked.size(), 1U);
  now += 101ms;
  ask("/v1/stats");
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(SharedAnswersTest, AllReadersOfAnAnswerShareItsText) {
  std::vector<const char*> texts;
  const auto read = [&] {
    auto call = std::make_shared<Call>(
        Call{{}, {}, {}, Responder([&](const HttpResponse& r) { texts.push_back(r.text().data()); }), false});
    call->request.max_age_s = 1;
    handler(call);
  };
  for (int i = 0; i < 3; ++i) read();
  answer(0, {200, "text/plain", std::string(100'000, 'x'), {}});
  read();  // of the kept answer
  ASSERT_EQ(texts.size(), 4U);
  for (const char* text : texts) EXPECT_EQ(static_cast<const void*>(text), texts.front());
}

TEST_F(SharedAnswersTest, ASharedAnswerServesRequestsThatAcceptItsAge) {
  ask("/v1/stats", 15);
  answer(0);
  now += 14s;
  EXPECT_EQ(*ask("/v1/stats", 15), 200);
  EXPECT_EQ(asked.size(), 1U);
  const auto impatient = ask("/v1/stats", 1);  // too old for this one
  EXPECT_EQ(*impatient, 0);
  ASSERT_EQ(asked.size(), 2U);
  const auto patient = ask("/v1/stats", 15);  // waits for the new one
  EXPECT_EQ(asked.size(), 2U);
  answer(1);
  EXPECT_EQ(*impatient, 200);
  EXPECT_EQ(*patient, 200);
  now += 61s;
  ask("/v1/stats", 3600);  // never older than a minute
  EXPECT_EQ(asked.size(), 3U);
}

TEST_F(SharedAnswersTest, TheOldestAnswerIsEvictedFirst) {
  for (int i = 0; i < 128; ++i) {
    ask("/" + std::to_string(i), 30);
    answer(static_cast<std::size_t>(i));
    now += 1ms;
  }
  ask("/new", 30);
  answer(128);
  EXPECT_EQ(*ask("/new", 30), 200);
  EXPECT_EQ(*ask("/1", 30), 200);
  EXPECT_EQ(*ask("/0", 30), 0);
}

TEST_F(SharedAnswersTest, ARequestWithoutAnAgeGetsANewAnswer) {
  ask("/v1/stats");
  answer(0);
  EXPECT_EQ(*ask("/v1/stats", 0), 0);
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(SharedAnswersTest, OtherTargetsAndRightsHaveOtherAnswers) {
  ask("/v1/stats");
  answer(0);
  ask("/v1/jobs");
  ask("/v1/stats", 1, true);
  EXPECT_EQ(asked.size(), 3U);
}

TEST_F(SharedAnswersTest, FailuresAreSharedAndNotKept) {
  const auto first = ask("/v1/stats"), second = ask("/v1/stats");
  answer(0, {503, "text/plain", "", {}});
  EXPECT_EQ(*first, 503);
  EXPECT_EQ(*second, 503);
  ask("/v1/stats");
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(SharedAnswersTest, ADroppedReadAnswersAllItsWaiters) {
  const auto first = ask("/v1/stats"), second = ask("/v1/stats");
  asked.clear();
  EXPECT_EQ(*first, 500);
  EXPECT_EQ(*second, 500);
}

TEST_F(SharedAnswersTest, LargeAndManyAnswersAreNotKept) {
  ask("/large");
  answer(0, {200, "text/plain", std::string(1 << 20, 'x'), {}});
  ask("/large");
  EXPECT_EQ(asked.size(), 2U);
  for (int i = 0; i < 1000; ++i) ask("/" + std::to_string(i));
  EXPECT_EQ(asked.size(), 1002U);
  for (std::size_t i = 1; i < asked.size(); ++i) answer(i);
  const std::size_t before = asked.size();
  for (int i = 0; i < 1000; ++i) ask("/" + std::to_string(i));
  EXPECT_GE(asked.size() - before, 1000U - 128U);
}

}  // namespace
}  // namespace tocsin
