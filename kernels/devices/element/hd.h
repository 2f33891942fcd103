// MEMFATHOM_HD: marks a function for the host and, if nvcc compiles it, also for the device.
#pragma once

#ifdef __CUDACC__
#define MEMFATHOM_HD __host__ __device__
#else
#define MEMFATHOM_HD
#endif
