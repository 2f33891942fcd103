#include "profiler/probe_message.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_io.h"
#include "core/json_value.h"

namespace memfathom {
namespace {

using nlohmann::json;

template <typename Read>
auto read_message(std::string_view message, const Read& read) {
  const std::string name = fmt::format("a probe message of {} bytes is malformed", message.size());
  try {
    return read(parse_json_value(message, name));
  } catch (const json::exception& failure) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", name, failure.what()));
  }
}

}  // namespace

std::string to_message(const ProbeRequest& request) {
  json message{{"device", request.device},
               {"workload", request.workload},
               {"job", request.job},
               {"ceiling_bytes", request.ceiling.count()},
               {"seed", request.seed},
               {"trace", request.trace},
               {"driver_records", request.driver_records}};
  for (const MeasuredLibrary& library : kMeasuredLibraries)
    message[library.name] = request.uses.*library.used;
  return message.dump();
}

std::string to_message(const ProbeReply& reply) {
  return json{{"environment", to_json(reply.environment)},
              {"memory_free_bytes", reply.memory_free.count()},
              {"cudnn_directory", reply.cudnn_directory},
              {"resident_threads", reply.resident_threads},
              {"devices", reply.devices},
              {"sample", reply.sample ? to_json(*reply.sample) : json(nullptr)},
              {"driver", reply.driver ? to_json(*reply.driver) : json(nullptr)}}
      .dump();
}

ProbeRequest request_from(std::string_view message) {
  return read_message(message, [](const json& document) {
    ProbeRequest request;
    document.at("device").get_to(request.device);
    document.at("workload").get_to(request.workload);
    document.at("job").get_to(request.job);
    for (const MeasuredLibrary& library : kMeasuredLibraries)
      document.at(library.name).get_to(request.uses.*library.used);
    request.ceiling = Bytes{document.at("ceiling_bytes").get<std::int64_t>()};
    document.at("seed").get_to(request.seed);
    document.at("trace").get_to(request.trace);
    request.driver_records = document.value("driver_records", false);
    return request;
  });
}

ProbeReply reply_from(std::string_view message) {
  return read_message(message, [](const json& document) {
    ProbeReply reply;
    reply.environment = environment_from_json(document.at("environment"));
    reply.memory_free = Bytes{document.at("memory_free_bytes").get<std::int64_t>()};
    reply.cudnn_directory = document.value("cudnn_directory", "");
    reply.resident_threads = document.value("resident_threads", std::int64_t{0});
    reply.devices = document.value("devices", 0);
    if (!document.at("sample").is_null()) reply.sample = sample_from_json(document.at("sample"));
    if (const json driver = document.value("driver", json(nullptr)); !driver.is_null())
      reply.driver = driver_records_from_json(driver);
    return reply;
  });
}

}  // namespace memfathom
