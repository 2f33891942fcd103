-- Schema 1. Rows are added, never changed: the one exception is runs.finished, which is set once.
-- A uid is a hash of what the row says (db/content_hash.h), so that merging databases is a union of sets.

CREATE TABLE environments (
  id                 INTEGER PRIMARY KEY,
  device_key         TEXT NOT NULL,     -- what the card is
  stack_key          TEXT NOT NULL,     -- what runs on it
  gpu                TEXT NOT NULL,
  architecture       TEXT NOT NULL,
  memory_total_bytes INTEGER NOT NULL,
  ecc                INTEGER NOT NULL CHECK (ecc IN (0, 1)),
  mig                TEXT NOT NULL,
  driver             TEXT NOT NULL,
  cuda               TEXT NOT NULL,
  cublas             TEXT NOT NULL,
  cudnn              TEXT NOT NULL,
  cufft              TEXT NOT NULL,
  framework          TEXT NOT NULL,
  framework_version  TEXT NOT NULL,
  os                 TEXT NOT NULL,
  UNIQUE (gpu, architecture, memory_total_bytes, ecc, mig, driver, cuda, cublas, cudnn, cufft,
          framework, framework_version, os)
) STRICT;
CREATE INDEX environments_by_key ON environments (device_key, stack_key);
CREATE INDEX environments_by_architecture ON environments (architecture);

CREATE TABLE runs (
  id             INTEGER PRIMARY KEY,
  uid            TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL REFERENCES environments (id),
  plan           TEXT NOT NULL,         -- quick, standard, full, ...
  started        TEXT NOT NULL,         -- ISO 8601, UTC
  finished       TEXT,                  -- NULL while it runs, and for good when it was interrupted
  program        TEXT NOT NULL,         -- the version of memfathom that measured
  nonce          TEXT NOT NULL          -- tells two runs apart that started in the same second
) STRICT;
CREATE INDEX runs_by_environment ON runs (environment_id);

CREATE TABLE samples (
  id                   INTEGER PRIMARY KEY,
  uid                  TEXT NOT NULL UNIQUE,
  run_id               INTEGER NOT NULL REFERENCES runs (id),
  number               INTEGER NOT NULL,  -- 1, 2, 3 in the order in which the run took them
  workload             TEXT NOT NULL,
  family               TEXT NOT NULL,
  job                  TEXT NOT NULL CHECK (json_valid(job)),
  validation           INTEGER NOT NULL CHECK (validation IN (0, 1)),
  -- Not IN (...): SQLite would build a table of the seven words for every row it inserts.
  status               TEXT NOT NULL CHECK (status = 'ok' OR status = 'crashed' OR status = 'timed_out'
                                            OR status = 'out_of_memory' OR status = 'killed'
                                            OR status = 'disturbed' OR status = 'failed'),
  status_note          TEXT NOT NULL,
  allocated_peak_bytes INTEGER,           -- NULL is "not measured", here and below
  reserved_peak_bytes  INTEGER,
  device_peak_bytes    INTEGER,
  device_metric        TEXT NOT NULL,     -- nvml-process, mem-get-info, rss, virtual
  seconds_per_step     REAL,
  repeats              INTEGER NOT NULL,
  spread_fraction      REAL,
  stop_criterion       TEXT NOT NULL
) STRICT;
CREATE INDEX samples_by_run ON samples (run_id, number);

CREATE TABLE stages (
  sample_id         INTEGER NOT NULL REFERENCES samples (id),
  position          INTEGER NOT NULL,
  stage             TEXT NOT NULL,
  device_used_bytes INTEGER NOT NULL,
  PRIMARY KEY (sample_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE workspace_requests (
  sample_id       INTEGER NOT NULL REFERENCES samples (id),
  position        INTEGER NOT NULL,
  library         TEXT NOT NULL,
  operation       TEXT NOT NULL,
  shape           TEXT NOT NULL,
  workspace_bytes INTEGER NOT NULL,
  PRIMARY KEY (sample_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE observations (
  id                INTEGER PRIMARY KEY,
  uid               TEXT NOT NULL UNIQUE,
  job               TEXT NOT NULL CHECK (json_valid(job)),
  metric            TEXT NOT NULL CHECK (metric IN ('allocated', 'reserved', 'device')),
  measured_bytes    INTEGER,
  fits              INTEGER CHECK (fits IN (0, 1)),
  gpu               TEXT NOT NULL,
  driver            TEXT NOT NULL,
  cuda              TEXT NOT NULL,
  cudnn             TEXT NOT NULL,
  framework         TEXT NOT NULL,
  framework_version TEXT NOT NULL,
  source            TEXT NOT NULL,
  group_name        TEXT NOT NULL,
  note              TEXT NOT NULL,
  CHECK (measured_bytes IS NOT NULL OR fits IS NOT NULL)
) STRICT;

CREATE TABLE calibrations (
  id                    INTEGER PRIMARY KEY,
  uid                   TEXT NOT NULL UNIQUE,
  name                  TEXT NOT NULL,
  environment_id        INTEGER NOT NULL REFERENCES environments (id),
  created               TEXT NOT NULL,
  source                TEXT NOT NULL CHECK (source IN ('exact', 'measured', 'fitted', 'published', 'default')),
  provenance            TEXT NOT NULL,
  usable                INTEGER NOT NULL CHECK (usable IN (0, 1)),
  refusal               TEXT NOT NULL,
  sample_count          INTEGER NOT NULL,
  held_out_median_error REAL,
  held_out_p90_error    REAL,
  under_by_10_percent   REAL,
  coverage_90           REAL,
  validation_rows       INTEGER NOT NULL,
  supersedes            TEXT NOT NULL     -- the uid of the calibration it replaces, which may be in another database
) STRICT;
CREATE INDEX calibrations_by_environment ON calibrations (environment_id, created);
CREATE INDEX calibrations_by_name ON calibrations (name, created);

CREATE TABLE coefficients (
  calibration_id INTEGER NOT NULL REFERENCES calibrations (id),
  position       INTEGER NOT NULL,
  name           TEXT NOT NULL,
  value          REAL NOT NULL,
  standard_error REAL NOT NULL,
  unit           TEXT NOT NULL,           -- of value and standard_error: bytes or 1
  source         TEXT NOT NULL CHECK (source IN ('exact', 'measured', 'fitted', 'published', 'default')),
  prior_only     INTEGER NOT NULL CHECK (prior_only IN (0, 1)),
  sample_count   INTEGER NOT NULL,
  PRIMARY KEY (calibration_id, position)
) STRICT, WITHOUT ROWID;

-- The covariance of coefficients, by their positions; the whole matrix, both triangles.
CREATE TABLE covariances (
  calibration_id  INTEGER NOT NULL REFERENCES calibrations (id),
  position        INTEGER NOT NULL,
  other_position  INTEGER NOT NULL,
  covariance      REAL NOT NULL,
  PRIMARY KEY (calibration_id, position, other_position)
) STRICT, WITHOUT ROWID;

-- The groups of ratios; '' is that of all. A group without ratios was sampled and did not differ from all.
CREATE TABLE ratio_groups (
  calibration_id INTEGER NOT NULL REFERENCES calibrations (id),
  position       INTEGER NOT NULL,
  group_name     TEXT NOT NULL,
  PRIMARY KEY (calibration_id, position)
) STRICT, WITHOUT ROWID;

-- Out-of-fold measured / predicted, sorted within a group.
CREATE TABLE ratios (
  calibration_id INTEGER NOT NULL,
  group_position INTEGER NOT NULL,
  position       INTEGER NOT NULL,
  ratio          REAL NOT NULL,
  PRIMARY KEY (calibration_id, group_position, position),
  FOREIGN KEY (calibration_id, group_position) REFERENCES ratio_groups (calibration_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE baselines (
  id             INTEGER PRIMARY KEY,
  uid            TEXT NOT NULL UNIQUE,
  name           TEXT NOT NULL,
  environment_id INTEGER NOT NULL REFERENCES environments (id),
  created        TEXT NOT NULL,
  document       TEXT NOT NULL CHECK (json_valid(document))   -- what `bench run` wrote
) STRICT;
CREATE INDEX baselines_by_name ON baselines (name, created);

CREATE TABLE annotations (
  id      INTEGER PRIMARY KEY,
  uid     TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL,                  -- the uid of a baseline, a run or a calibration
  created TEXT NOT NULL,
  note    TEXT NOT NULL
) STRICT;
CREATE INDEX annotations_by_subject ON annotations (subject, created);
