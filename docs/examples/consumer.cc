// A consumer of a pull type in C++: leases due jobs, works on them, and says what became of each.
//
//   build/release/example_consumer HOST:PORT TYPE [JOBS]      stops after so many jobs, else runs on
//
// With tokens configured, TOCSIN_TOKEN holds one of role consumer.
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using Json = nlohmann::json;

// Your work. An exception is a failed attempt; the job comes again, or is dead after its last one.
void handle(const Json& job) {
  if (job["attribute"] == "poison") throw std::runtime_error("cannot handle this");
  std::printf("%s is due since %s (attempt %d, data %s)\n", job["biz_id"].get<std::string>().c_str(),
              job["action_time"].get<std::string>().c_str(), job["attempts"].get<int>(),
              job["attribute"].dump().c_str());
  std::fflush(stdout);
}

// The items of the reply; null when it did not work out and is worth another try.
Json post(httplib::Client& tocsin, const std::string& path, const Json& body) {
  const auto reply = tocsin.Post(path.c_str(), body.dump(), "application/json");
  if (!reply || reply->status == 429 || reply->status == 503) return nullptr;
  if (reply->status != 200) throw std::runtime_error(path + ": " + reply->body);
  return Json::parse(reply->body)["items"];
}

void work_on(httplib::Client& tocsin, const Json& jobs) {
  Json done = Json::array(), failed = Json::array();
  for (const Json& job : jobs) {
    Json lease = {{"job_id", job["job_id"]}, {"lease_token", job["lease_token"]}};
    try {
      handle(job);
      done.push_back(lease);
    } catch (const std::exception& error) {
      lease["error"] = error.what();
      failed.push_back(lease);
    }
  }
  // What cannot be said now is not lost: the leases end, and the jobs come again. Neither is what answers "stale".
  if (!done.empty()) post(tocsin, "/v1/leases/ack", {{"items", done}});
  if (!failed.empty()) post(tocsin, "/v1/leases/nack", {{"items", failed}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s HOST:PORT TYPE [JOBS]\n", argv[0]);
    return 2;
  }
  httplib::Client tocsin(argv[1]);
  tocsin.set_keep_alive(true);
  tocsin.set_tcp_nodelay(true);
  tocsin.set_read_timeout(75, 0);  // longer than the longest wait
  if (const char* token = std::getenv("TOCSIN_TOKEN")) tocsin.set_bearer_token_auth(token);

  const std::string path = "/v1/types/" + std::string(argv[2]) + "/lease";
  std::size_t left = argc > 3 ? std::stoul(argv[3]) : static_cast<std::size_t>(-1);
  while (left > 0) {
    const Json jobs = post(tocsin, path, {{"max", std::min<std::size_t>(100, left)}, {"wait_ms", 20000}});
    if (jobs.is_null()) {
      std::this_thread::sleep_for(std::chrono::seconds(1));  // busy, restarting, or its database is down
      continue;
    }
    work_on(tocsin, jobs);
    left -= jobs.size();
  }
}
