#include "serve/tls_certificate.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct FreeChain {
  void operator()(STACK_OF(X509) * chain) const { sk_X509_pop_free(chain, X509_free); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File opened(const std::string& path) {
  File file(std::fopen(path.c_str(), "re"));
  if (!file)
    throw Error(ErrorKind::kInput, fmt::format("{} cannot be read; mount the Secret there", path));
  return file;
}

// Of both files: they change together.
fs::file_time_type change_of(const std::string& certificate, const std::string& key) {
  std::error_code failure;
  return std::max(fs::last_write_time(certificate, failure), fs::last_write_time(key, failure));
}

}  // namespace

struct TlsCertificate::Loaded {
  std::unique_ptr<X509, decltype(&X509_free)> leaf{nullptr, X509_free};
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key{nullptr, EVP_PKEY_free};
  std::unique_ptr<STACK_OF(X509), FreeChain> chain;
};

TlsCertificate::TlsCertificate(std::string certificate, std::string key)
    : certificate_(std::move(certificate)), key_(std::move(key)), loaded_(load()) {
  changed_ = change_of(certificate_, key_);
}

std::shared_ptr<const TlsCertificate::Loaded> TlsCertificate::load() const {
  auto loaded = std::make_shared<Loaded>();
  const File file = opened(certificate_);
  loaded->leaf.reset(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
  if (!loaded->leaf) {
    ERR_clear_error();
    throw Error(ErrorKind::kInput,
                fmt::format("{} holds no certificate; it must be a PEM file", certificate_));
  }
  loaded->chain.reset(sk_X509_new_null());
  while (X509* further = PEM_read_X509(file.get(), nullptr, nullptr, nullptr))
    sk_X509_push(loaded->chain.get(), further);
  loaded->key.reset(PEM_read_PrivateKey(opened(key_).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();  // the end of the file counts as one
  if (!loaded->key)
    throw Error(ErrorKind::kInput, fmt::format("{} holds no private key; it must be a PEM file "
                                               "without a password",
                                               key_));
  if (X509_check_private_key(loaded->leaf.get(), loaded->key.get()) != 1) {
    ERR_clear_error();
    throw Error(ErrorKind::kInput, fmt::format("the key in {} is not that of the certificate in {}",
                                               key_, certificate_));
  }
  return loaded;
}

std::shared_ptr<const TlsCertificate::Loaded> TlsCertificate::current() {
  constexpr std::chrono::seconds kPause{1};
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kPause) return loaded_;
  looked_ = now;
  const fs::file_time_type changed = change_of(certificate_, key_);
  if (changed == changed_) return loaded_;
  try {
    loaded_ = load();
    changed_ = changed;
  } catch (const Error& error) {
    std::fprintf(stderr, "memfathom: %s; the certificate read before is used\n", error.what());
  }
  return loaded_;
}

int TlsCertificate::choose(SSL* connection, void* certificate) {
  const std::shared_ptr<const Loaded> loaded = static_cast<TlsCertificate*>(certificate)->current();
  return SSL_use_cert_and_key(connection, loaded->leaf.get(), loaded->key.get(),
                              loaded->chain.get(), 1);
}

void TlsCertificate::use_in(SSL_CTX& context) {
  SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
  SSL_CTX_set_cert_cb(&context, choose, this);
}

}  // namespace memfathom
