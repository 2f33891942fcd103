/* memfathom: how much GPU memory a training or inference job needs, before it runs.
 *
 * This is the C interface of libmemfathom, and the only one that the library exports. Each question
 * is JSON in and JSON out: requests and results are the job files and results of docs/contract.md,
 * the same text that the program `memfathom` prints with --format json. C++ programs use
 * memfathom/session.h, which wraps this header and needs nothing but it and nlohmann/json.
 *
 *     #include <memfathom/memfathom.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       memfathom_session* session = NULL;
 *       char* text = NULL;
 *       if (memfathom_open("{}", &session, &text) == MEMFATHOM_OK)
 *         memfathom_estimate(session, "{\"model\": {\"preset\": \"llama-2-7b\"}}", &text);
 *       puts(text != NULL ? text : "out of memory");
 *       memfathom_free(text);
 *       memfathom_close(session);
 *     }
 *
 * Strings. All strings are UTF-8 and end with a NUL. Arguments stay the caller's. A result is the
 * caller's from the moment the call returns: release it with memfathom_free(). Every call writes
 * `*result`: the result, or, if the call did not return MEMFATHOM_OK, the error object
 * {"schema": "memfathom.error/1", "id": null, "error": "one sentence", "kind": "input"}. It is NULL
 * only with MEMFATHOM_NO_MEMORY (and after a successful memfathom_open).
 *
 * Threads. A session may be used from several threads at once. Close it when no call is running.
 *
 * Errors. No exception leaves the library, and it never ends the process or prints anything.
 */
#ifndef MEMFATHOM_MEMFATHOM_H_
#define MEMFATHOM_MEMFATHOM_H_

#if defined(__GNUC__)
#define MEMFATHOM_EXPORT __attribute__((visibility("default")))
#else
#define MEMFATHOM_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The calibrations, GPUs and caches that answers come from. */
typedef struct memfathom_session memfathom_session;

/* The numbers are those of the program's exit codes where it has one (docs/exit-codes.md). */
typedef enum memfathom_status {
  MEMFATHOM_OK = 0,
  MEMFATHOM_INPUT = 2, /* the request, a job or a file is wrong; the sentence says what to do */
  MEMFATHOM_ENVIRONMENT = 4, /* a device, a library or a file system failed */
  MEMFATHOM_NO_MEMORY = 5,   /* this process has no memory left; *result is NULL */
  MEMFATHOM_INTERNAL = 70    /* a bug of memfathom */
} memfathom_status;

/* "0.1.0". Never freed. */
MEMFATHOM_EXPORT const char* memfathom_version(void);

/* Opens a session. `options` is NULL or an object:
 *   "database": the path of a database with calibrations; null: none; absent: the user's own
 *               (docs/environment.md). A database that does not exist has no calibrations.
 *   "live_gpus": false: never query this machine's GPUs. Default true.
 * On success `*session` is the caller's until memfathom_close(). */
MEMFATHOM_EXPORT memfathom_status memfathom_open(const char* options, memfathom_session** session,
                                                 char** result);
/* Closing NULL does nothing. */
MEMFATHOM_EXPORT void memfathom_close(memfathom_session* session);

/* A request about a job is a job (docs/contract.md section 3), or an object:
 *   "job":   a job, or the text of a job file (YAML or JSON)
 *   "files": paths of job files, model folders, and files of other tools (docs/your-files.md);
 *            a later one wins. Instead of a path, {"name": "training_args.json", "text": "{...}"}
 *            is a file by its contents; the name stands for it in messages
 *   "command": the command that trains, as a list of words (["torchrun", "train.py", "--bf16"]) or
 *            as the text of a shell script (docs/command-lines.md); nothing is executed
 *   "set":   dotted keys and values, which win over all: {"training.batch_size": 8}
 * and further keys, named below. */

/* memfathom.estimate/1. Further keys: "explain", "rule_of_thumb", "charts", "document", "yaml",
 * "timeline", "suggest" (true or false). With charts the result also has
 * {"charts": {"peak": "<svg ...", "timeline": "<svg ..."}}, with document
 * {"document": {"model": ...}}: the completed job, whatever it was read from; with yaml the text of
 * its job file, with timeline what was alive from allocation to allocation (docs/contract.md
 * section 4). With "suggest": false no changes are tried where the job does not fit. */
MEMFATHOM_EXPORT memfathom_status memfathom_estimate(const memfathom_session* session,
                                                     const char* request, char** result);
/* Many jobs: JSON lines in, JSON lines out, in order, computed on all cores. A line that cannot be
 * answered becomes an error object; the call still returns MEMFATHOM_OK. `options` is NULL or
 * {"explain": true}. */
MEMFATHOM_EXPORT memfathom_status memfathom_estimate_batch(const memfathom_session* session,
                                                           const char* jobs, const char* options,
                                                           char** result);
/* memfathom.recommend/1. Further keys: "probability", between 0 and 1; "frontier", true or false.
 */
MEMFATHOM_EXPORT memfathom_status memfathom_recommend(const memfathom_session* session,
                                                      const char* request, char** result);
/* memfathom.compare/1. Further keys: "strategies" (names), "patches" (an object of job changes by
 * name), "grid", "targets" (lists of strings), "ranked" (true or false). */
MEMFATHOM_EXPORT memfathom_status memfathom_compare(const memfathom_session* session,
                                                    const char* request, char** result);
/* {"models": [...]}: every model that can be named. */
MEMFATHOM_EXPORT memfathom_status memfathom_models(const memfathom_session* session, char** result);
/* {"gpus": [...]}: all GPUs where `request` is NULL or "{}", else those that the job fits on. */
MEMFATHOM_EXPORT memfathom_status memfathom_gpus(const memfathom_session* session,
                                                 const char* request, char** result);
/* memfathom.oom/1: {"text": a log}; the last out-of-memory message in it as figures, and what
 * follows from them. */
MEMFATHOM_EXPORT memfathom_status memfathom_oom(const memfathom_session* session,
                                                const char* request, char** result);
/* memfathom.admission/1: {"decision": "allow", "note" or "refuse", "sentence"}: whether a job may
 * start. Refused is only what was understood and does not fit with a probability above
 * "probability" (0.95); "gpu" is the GPU it will run on, whatever the job says, and "gpus" how many
 * of them it asks for. */
MEMFATHOM_EXPORT memfathom_status memfathom_admit(const memfathom_session* session,
                                                  const char* request, char** result);
/* memfathom.accuracy/1: estimates against measured jobs. Keys: "data" (a file or folder,
 * docs/contract.md section 6), "only", "groups", "anchors", "folds". */
MEMFATHOM_EXPORT memfathom_status memfathom_accuracy(const memfathom_session* session,
                                                     const char* request, char** result);

/* Releases a result. Releasing NULL does nothing. */
MEMFATHOM_EXPORT void memfathom_free(char* text);

/* What the program `memfathom` does with these arguments; argv[0] is its name. Returns its exit
 * code. It writes to standard output and standard error, and installs signal handlers while it
 * runs: for the program itself. */
MEMFATHOM_EXPORT int memfathom_main(int argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif /* MEMFATHOM_MEMFATHOM_H_ */
