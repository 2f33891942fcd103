/* A C program of somebody else: estimates the job file that it is given. */
#include <memfathom/memfathom.h>
#include <stdio.h>

int main(int argc, char** argv) {
  memfathom_session* session = NULL;
  char request[4096];
  char* text = NULL;
  memfathom_status status = MEMFATHOM_INPUT;
  if (argc != 2) return 2;
  snprintf(request, sizeof request, "{\"files\": [\"%s\"]}", argv[1]);
  status = memfathom_open(NULL, &session, &text);
  if (status == MEMFATHOM_OK) status = memfathom_estimate(session, request, &text);
  if (text != NULL) puts(text);
  memfathom_free(text);
  memfathom_close(session);
  return status;
}
