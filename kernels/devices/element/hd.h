// MEMFATHOM_HD: marks a function that runs on the host and, where nvcc compiles it, on the device
// as well.
#pragma once

#ifdef __CUDACC__
#define MEMFATHOM_HD __host__ __device__
#else
#define MEMFATHOM_HD
#endif
