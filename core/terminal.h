// terminal: the size of the terminal behind a file descriptor.
#pragma once

#include <cstddef>

namespace memfathom {

// Columns of the terminal: $COLUMNS if it is a number of at least 20, else what the terminal says,
// else 80. 0 if the descriptor is no terminal: what is piped or written to a file has no width.
std::size_t terminal_columns(int file_descriptor);

}  // namespace memfathom
