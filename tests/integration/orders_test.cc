// Orders cancelled by the database itself while node and database die at random: docs/examples/orders.sql, as it
// stands.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <pqxx/pqxx>
#include <random>
#include <sstream>

#include "support/node_process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

constexpr int kItems = 50, kQuantity = 2, kStock = 1'000'000;

class Orders : public ::testing::Test {
 protected:
  // TOCSIN_ORDERS: for a longer run, `scripts/dev orders`.
  static int wanted() {
    const char* text = std::getenv("TOCSIN_ORDERS");
    return text ? std::atoi(text) : 2000;
  }
  void start_node() {
    node_.reset();
    node_ = std::make_unique<NodeProcess>(cluster_.url(), std::vector<std::string>{"--migrate", "--shards", "8"});
  }
  void execute(const std::string& statements) {
    pqxx::connection connection(cluster_.url());
    pqxx::nontransaction(connection).exec(statements);
  }
  std::int64_t number(const std::string& query) {
    pqxx::connection connection(cluster_.url());
    return pqxx::nontransaction(connection).exec1(query)[0].as<std::int64_t>();
  }
  void open_shop() {
    std::ifstream file(std::string(TOCSIN_EXAMPLES) + "/orders.sql");
    std::ostringstream text;
    text << file.rdbuf();
    execute(text.str());
    execute("INSERT INTO shop.stock SELECT 'item-' || i, " + std::to_string(kStock) + " FROM generate_series(0, " +
            std::to_string(kItems - 1) + ") i");
    execute(
        "CREATE TABLE shop.audit (id text); GRANT INSERT ON shop.audit TO tocsin_handler;"
        "CREATE FUNCTION shop.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF new.cancelled_at IS DISTINCT FROM old.cancelled_at THEN INSERT INTO shop.audit VALUES (new.id); END IF;"
        " RETURN new; END $$;"
        "CREATE TRIGGER note BEFORE UPDATE ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.note()");
    const Reply reply =
        node_->rest().put("/v1/types/order.unpaid", {{"handler", {{"kind", "sql"}, {"function", "shop.cancel_unpaid"}}},
                                                     {"ttr_ms", 1500},
                                                     {"backoff", {{"base_ms", 50}, {"max_ms", 500}}},
                                                     {"max_attempts", 100}});
    ASSERT_EQ(reply.status, 201) << reply.text;
  }
  // Deadlines spread evenly from `from_s` on over as long as it takes to do 400 a second.
  void place(int n, int from_s) {
    execute("SELECT shop.place('order-' || i, 'item-' || i % " + std::to_string(kItems) + ", " +
            std::to_string(kQuantity) + ", interval '1 s' * (" + std::to_string(from_s) +
            " + i / 400.0)) FROM generate_series(1, " + std::to_string(n) + ") i");
  }

  PrivateCluster cluster_;
  std::unique_ptr<NodeProcess> node_;
};

TEST_F(Orders, EveryUnpaidOrderIsCancelledOnceDespiteCrashes) {
  const int n = wanted();
  start_node();
  open_shop();
  place(n, 2);
  // Every tenth is paid in time.
  const auto paid = number(
      "SELECT count(*) FROM (SELECT shop.pay(id) AS ok FROM shop.orders WHERE id LIKE '%7') p"
      " WHERE ok");
  std::minstd_rand random(2026);
  const int rounds = n <= 2000 ? 4 : 20;
  for (int round = 1; round <= rounds; ++round) {
    const auto threshold = std::int64_t{n} * 9 / 10 * round / (rounds + 1);
    ASSERT_TRUE(eventually([&] { return number("SELECT count(*) FROM shop.audit") >= threshold; })) << node_->log();
    if (round % 2 == static_cast<int>(random() % 2) || round == 1) {
      node_->kill();
      start_node();
    } else {
      cluster_.crash();
      cluster_.start();
    }
  }
  EXPECT_TRUE(
      eventually([&] { return number("SELECT count(*) FROM tocsin.job WHERE status IN ('pending', 'running')") == 0; },
                 std::chrono::minutes(3)))
      << node_->log();
  EXPECT_EQ(number("SELECT count(*) FROM shop.orders WHERE cancelled_at IS NOT NULL"), n - paid);
  EXPECT_EQ(number("SELECT count(*) FROM shop.orders WHERE cancelled_at IS NOT NULL AND paid_at IS NOT NULL"), 0);
  EXPECT_EQ(number("SELECT count(*) FROM shop.audit"), n - paid) << "each once";
  EXPECT_EQ(number("SELECT count(DISTINCT id) FROM shop.audit"), n - paid);
  EXPECT_EQ(number("SELECT sum(n) FROM shop.stock"), std::int64_t{kItems} * kStock - paid * kQuantity)
      << "what was reserved is back, once";
  // A payment at the moment of its deadline wins as well: that job has run, and found the order paid.
  EXPECT_EQ(number("SELECT count(*) FROM tocsin.job WHERE status IN ('done', 'cancelled')"), n);
  EXPECT_LE(number("SELECT count(*) FROM tocsin.job WHERE status = 'cancelled'"), paid);
  std::printf("%d orders, %lld paid, %lld attempts repeated\n", n, static_cast<long long>(paid),
              static_cast<long long>(number("SELECT sum(attempts - 1) FROM tocsin.job WHERE status = 'done'")));
}

}  // namespace
}  // namespace tocsin
