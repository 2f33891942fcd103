// TlsCertificate: a certificate chain and its key from mounted files, read again when they change.
//
// Kubernetes replaces the files of a Secret while the program runs; connections made after that get
// the new certificate, and the old one is kept while the new files do not belong together.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

namespace memfathom {

// Thread-safe.
class TlsCertificate {
 public:
  // PEM files. Throws Error(kInput) if they cannot be read or do not belong together.
  TlsCertificate(std::string certificate, std::string key);

  // Connections of this context show the certificate. It must outlive the context.
  void use_in(SSL_CTX& context);

 private:
  struct Loaded;
  static int choose(SSL* connection, void* certificate);
  std::shared_ptr<const Loaded> current();
  std::shared_ptr<const Loaded> load() const;

  std::string certificate_, key_;
  std::mutex mutex_;
  std::shared_ptr<const Loaded> loaded_;
  std::filesystem::file_time_type changed_;
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace memfathom
