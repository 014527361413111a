#include "brokers/rabbitmq.h"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/server.h"

namespace tocsin {
namespace {

constexpr amqp_channel_t kChannel = 1;

amqp_bytes_t bytes(const std::string& text) { return {text.size(), const_cast<char*>(text.data())}; }
std::string text(const amqp_bytes_t& value) { return {static_cast<const char*>(value.bytes), value.len}; }

std::string attempt_of(const amqp_table_t& headers) {
  for (int i = 0; i < headers.num_entries; ++i)
    if (text(headers.entries[i].key) == "tocsin-attempt") return text(headers.entries[i].value.value.bytes);
  return "";
}

}  // namespace

RabbitMq::RabbitMq() : port_(free_port()), distribution_port_(free_port()), epmd_port_(free_port()) {
  folder_ = required_env("TOCSIN_TEST_DIR") + "/rabbitmq-" + std::to_string(port_);
  std::filesystem::create_directories(folder_ + "/home");
  std::ofstream(folder_ + "/plugins") << "[].\n";
  start();
}

RabbitMq::~RabbitMq() {
  kill();
  // The Erlang port mapper that the broker has started continues without it.
  run({"/usr/bin/env", "ERL_EPMD_PORT=" + std::to_string(epmd_port_), "/usr/bin/epmd", "-kill"});
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void RabbitMq::start() {
  const std::string port = std::to_string(port_);
  process_ = std::make_unique<Process>(
      std::vector<std::string>{"/usr/bin/env",
                               "--chdir=" + folder_ + "/home",  // where it leaves its memory when it dies badly
                               "HOME=" + folder_ + "/home",
                               "RABBITMQ_NODENAME=tocsin_" + port + "@localhost",
                               "RABBITMQ_NODE_PORT=" + port,
                               "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
                               "RABBITMQ_DIST_PORT=" + std::to_string(distribution_port_),
                               "RABBITMQ_MNESIA_BASE=" + folder_ + "/data",
                               "RABBITMQ_LOG_BASE=" + folder_,
                               "RABBITMQ_LOGS=-",
                               "RABBITMQ_ENABLED_PLUGINS_FILE=" + folder_ + "/plugins",
                               "RABBITMQ_CONFIG_FILE=" + folder_ + "/rabbitmq",
                               "RABBITMQ_GENERATED_CONFIG_DIR=" + folder_ + "/config",
                               "RABBITMQ_FEATURE_FLAGS_FILE=" + folder_ + "/flags",
                               "RABBITMQ_PID_FILE=" + folder_ + "/pid",
                               "RABBITMQ_CONF_ENV_FILE=/dev/null",
                               "ERL_EPMD_PORT=" + std::to_string(epmd_port_),
                               "ERL_EPMD_ADDRESS=127.0.0.1",
                               "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
                               "LANG=C.UTF-8",
                               "/usr/lib/rabbitmq/bin/rabbitmq-server"});
  const bool is_up = eventually([&] {
    if (!process_->is_running()) return true;
    try {
      AmqpProbe probe(port_);
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  });
  if (!is_up || !process_->is_running()) throw std::runtime_error("RabbitMQ does not start: " + process_->out());
}

void RabbitMq::kill() {
  if (!process_) return;
  // The process that was started is a shell; the broker itself says its number.
  pid_t pid = 0;
  std::ifstream(folder_ + "/pid") >> pid;
  if (pid > 1) ::kill(pid, SIGKILL);
  process_->signal(SIGKILL);
  process_->wait();
  process_.reset();
}

AmqpProbe::AmqpProbe(int port) : state_(amqp_new_connection()) {
  timeval timeout{5, 0};
  amqp_socket_t* socket = amqp_tcp_socket_new(state_);
  const bool is_open = amqp_socket_open_noblock(socket, "127.0.0.1", port, &timeout) == AMQP_STATUS_OK &&
                       amqp_login(state_, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest").reply_type ==
                           AMQP_RESPONSE_NORMAL;
  if (is_open) amqp_channel_open(state_, kChannel);
  if (is_open) amqp_confirm_select(state_, kChannel);
  if (!is_open || amqp_get_rpc_reply(state_).reply_type != AMQP_RESPONSE_NORMAL) {
    amqp_destroy_connection(state_);
    throw std::runtime_error("cannot connect to RabbitMQ");
  }
}

AmqpProbe::~AmqpProbe() { amqp_destroy_connection(state_); }

void AmqpProbe::check(const char* what) {
  if (amqp_get_rpc_reply(state_).reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error(what);
}

void AmqpProbe::declare(const std::string& queue, const std::map<std::string, std::string>& arguments) {
  std::vector<amqp_table_entry_t> entries;
  for (const auto& [name, value] : arguments) {
    amqp_table_entry_t& entry = entries.emplace_back();
    entry.key = bytes(name);
    const bool is_number = value.find_first_not_of("0123456789") == std::string::npos && !value.empty();
    entry.value.kind = is_number ? AMQP_FIELD_KIND_I32 : AMQP_FIELD_KIND_UTF8;
    if (is_number) {
      entry.value.value.i32 = std::stoi(value);
    } else {
      entry.value.value.bytes = bytes(value);
    }
  }
  amqp_queue_declare(state_, kChannel, bytes(queue), 0, 1, 0, 0, {static_cast<int>(entries.size()), entries.data()});
  check("declare");
}

void AmqpProbe::publish(const std::string& queue, const std::string& body, const std::string& id) {
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | (id.empty() ? 0 : AMQP_BASIC_MESSAGE_ID_FLAG);
  properties.delivery_mode = 2;
  properties.message_id = bytes(id);
  if (amqp_basic_publish(state_, kChannel, amqp_empty_bytes, bytes(queue), 0, 0, &properties, bytes(body)) !=
      AMQP_STATUS_OK)
    throw std::runtime_error("publish");
  unconfirmed_.insert(++last_tag_);
}

void AmqpProbe::wait_for_confirms(std::size_t most) {
  while (unconfirmed_.size() > most) {
    amqp_frame_t frame;
    if (amqp_simple_wait_frame(state_, &frame) != AMQP_STATUS_OK) throw std::runtime_error("confirms");
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD) continue;
    const auto* ack = static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
    unconfirmed_.erase(ack->multiple ? unconfirmed_.begin() : unconfirmed_.find(ack->delivery_tag),
                       unconfirmed_.upper_bound(ack->delivery_tag));
  }
}

std::optional<QueuedMessage> AmqpProbe::take(const std::string& queue) {
  wait_for_confirms();  // they would come between the parts of the message
  const amqp_rpc_reply_t reply = amqp_basic_get(state_, kChannel, bytes(queue), /*no_ack=*/1);
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error("get");
  if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD) return {};
  amqp_message_t message;
  if (amqp_read_message(state_, kChannel, &message, 0).reply_type != AMQP_RESPONSE_NORMAL)
    throw std::runtime_error("read");
  QueuedMessage taken;
  const amqp_basic_properties_t& properties = message.properties;
  taken.body = text(message.body);
  if (properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG) taken.id = text(properties.message_id);
  if (properties._flags & AMQP_BASIC_TYPE_FLAG) taken.type = text(properties.type);
  if (properties._flags & AMQP_BASIC_CONTENT_TYPE_FLAG) taken.content_type = text(properties.content_type);
  if (properties._flags & AMQP_BASIC_DELIVERY_MODE_FLAG) taken.delivery_mode = properties.delivery_mode;
  if (properties._flags & AMQP_BASIC_HEADERS_FLAG) taken.attempt = attempt_of(properties.headers);
  amqp_destroy_message(&message);
  amqp_maybe_release_buffers(state_);
  return taken;
}

std::vector<QueuedMessage> AmqpProbe::take_all(const std::string& queue) {
  std::vector<QueuedMessage> all;
  while (auto message = take(queue)) all.push_back(*std::move(message));
  return all;
}

int AmqpProbe::depth(const std::string& queue) {
  const auto* found = amqp_queue_declare(state_, kChannel, bytes(queue), /*passive=*/1, 1, 0, 0, amqp_empty_table);
  check("depth");
  const int depth = static_cast<int>(found->message_count);
  amqp_maybe_release_buffers(state_);
  return depth;
}

}  // namespace tocsin
