// A program of somebody else that uses the installed package.
#include <iostream>

#include "core/bytes.h"
#include "core/document.h"

int main() {
  const memfathom::Node job = memfathom::parse_yaml("target: {memory: 24GiB}", "job.yaml");
  std::cout << memfathom::to_string(job.at("target").at("memory").as_bytes()) << '\n';
}
