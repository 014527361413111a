#include "unit/delivery/scripted_server.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <set>

namespace tocsin {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

std::string to_lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

}  // namespace

TlsIdentity make_identity(const std::string& host) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(host.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, ("DNS:" + host).c_str());
  X509_add_ext(certificate, names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate, key, EVP_sha256());

  BIO* key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key_text, key, nullptr, nullptr, 0, nullptr, nullptr);
  BIO* certificate_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_text, certificate);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {text_of(key_text), text_of(certificate_text)};
}

struct ScriptedServer::State {
  State(Script its_script, const std::optional<TlsIdentity>& identity) : script(std::move(its_script)) {
    if (!identity) return;
    tls.emplace(asio::ssl::context::tls_server);
    tls->use_private_key(asio::buffer(identity->key), asio::ssl::context::pem);
    tls->use_certificate_chain(asio::buffer(identity->certificate));
  }

  void accept_all();
  void serve(tcp::socket socket);
  void record(ReceivedRequest request) {
    std::lock_guard lock(mutex);
    requests.push_back(std::move(request));
    changed.notify_all();
  }

  const Script script;
  std::optional<asio::ssl::context> tls;
  asio::io_context io;
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<ReceivedRequest> requests;
  std::set<int> open;  // descriptors
  int accepted = 0;
  int closed = 0;
  bool is_stopping = false;
  std::list<std::thread> threads;
  std::thread acceptor_thread{[this] { accept_all(); }};
};

namespace {

template <class Stream, class Record>
class SocketPeer final : public ScriptedServer::Peer {
 public:
  SocketPeer(Stream& stream, int descriptor, Record record)
      : stream_(stream), descriptor_(descriptor), record_(std::move(record)) {}

  bool read_request() override {
    http::request<http::string_body> request;
    error_code ec;
    http::read(stream_, buffer_, request, ec);
    if (ec) return false;
    ReceivedRequest received{std::string(request.method_string()), std::string(request.target()), {}, request.body()};
    for (const auto& header : request)
      received.headers[to_lower(std::string(header.name_string()))] = std::string(header.value());
    record_(std::move(received));
    return true;
  }

  bool write(std::string_view bytes) override {
    error_code ec;
    asio::write(stream_, asio::buffer(bytes.data(), bytes.size()), ec);
    return !ec;
  }

  void wait_for_close() override {
    char bytes[256];
    error_code ec;
    while (!ec) stream_.read_some(asio::buffer(bytes), ec);
  }

  bool is_closed_within(std::chrono::milliseconds time) override {
    pollfd poll_for{descriptor_, POLLRDHUP, 0};
    return ::poll(&poll_for, 1, static_cast<int>(time.count())) > 0;
  }

 private:
  Stream& stream_;
  const int descriptor_;
  Record record_;
  boost::beast::flat_buffer buffer_;
};

}  // namespace

void ScriptedServer::State::accept_all() {
  while (true) {
    tcp::socket socket(io);
    error_code ec;
    acceptor.accept(socket, ec);
    std::lock_guard lock(mutex);
    if (is_stopping) return;
    if (ec) continue;
    ++accepted;
    open.insert(socket.native_handle());
    changed.notify_all();
    threads.emplace_back([this, taken = std::move(socket)]() mutable { serve(std::move(taken)); });
  }
}

void ScriptedServer::State::serve(tcp::socket socket) {
  const int descriptor = socket.native_handle();
  const auto note = [this](ReceivedRequest request) { record(std::move(request)); };
  error_code ec;
  if (tls) {
    asio::ssl::stream<tcp::socket&> stream(socket, *tls);
    stream.handshake(asio::ssl::stream_base::server, ec);
    SocketPeer peer(stream, descriptor, note);
    if (!ec) script(peer);
  } else {
    SocketPeer peer(socket, descriptor, note);
    script(peer);
  }
  std::lock_guard lock(mutex);
  open.erase(descriptor);
  socket.close(ec);
  ++closed;
  changed.notify_all();
}

ScriptedServer::ScriptedServer(Script script, std::optional<TlsIdentity> identity)
    : state_(std::make_unique<State>(std::move(script), identity)) {}

ScriptedServer::~ScriptedServer() {
  {
    std::lock_guard lock(state_->mutex);
    state_->is_stopping = true;
    ::shutdown(state_->acceptor.native_handle(), SHUT_RDWR);
    for (const int descriptor : state_->open) ::shutdown(descriptor, SHUT_RDWR);
  }
  state_->acceptor_thread.join();
  for (std::thread& thread : state_->threads) thread.join();
}

std::uint16_t ScriptedServer::port() const { return state_->acceptor.local_endpoint().port(); }

std::vector<ReceivedRequest> ScriptedServer::requests() const {
  std::lock_guard lock(state_->mutex);
  return state_->requests;
}

int ScriptedServer::connections() const {
  std::lock_guard lock(state_->mutex);
  return state_->accepted;
}

void ScriptedServer::wait_for_closed(int n) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->closed >= n; });
}

void ScriptedServer::wait_for_requests(int n) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->requests.size() >= static_cast<std::size_t>(n); });
}

ScriptedServer::Script always(std::string answer) {
  return [answer = std::move(answer)](ScriptedServer::Peer& peer) {
    while (peer.read_request() && peer.write(answer)) {
    }
  };
}

}  // namespace tocsin
