#include "memfathom/memfathom.h"

int main(int argc, char** argv) { return memfathom_main(argc, argv); }
