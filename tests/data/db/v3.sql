PRAGMA application_id = 1835426914; PRAGMA user_version = 3;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE annotations (
  id      INTEGER PRIMARY KEY,
  uid     TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL,                  -- the uid of a baseline, a run or a calibration
  created TEXT NOT NULL,
  note    TEXT NOT NULL
) STRICT;
INSERT INTO annotations VALUES(1,'75ebf51c66f0d03fd179eb63f97583ae','8fddb468d8c7f21f247d3f2a8cb2df4b','2026-11-16T13:00:00Z','the new driver');
CREATE TABLE baselines (
  id             INTEGER PRIMARY KEY,
  uid            TEXT NOT NULL UNIQUE,
  name           TEXT NOT NULL,
  environment_id INTEGER NOT NULL REFERENCES environments (id),
  created        TEXT NOT NULL,
  document       TEXT NOT NULL CHECK (json_valid(document))   -- what `bench run` wrote
) STRICT;
INSERT INTO baselines VALUES(1,'8fddb468d8c7f21f247d3f2a8cb2df4b','nightly',1,'2026-11-16T12:00:00Z','{"benchmarks":[{"name":"conv","device_peak_bytes":1048576}]}');
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
INSERT INTO calibrations VALUES(1,'2419983534f5e8aea12b2d9654d1e4a2','a100-40gb/pytorch',1,'2026-11-16T12:00:00Z','measured','profile of this machine',1,'',120,0.0040000000000000000832,0.020000000000000000416,NULL,0.91000000000000003108,24,'');
INSERT INTO calibrations VALUES(2,'0f24452d2e5fd6b7882055316d5b596c','a100-40gb/pytorch',3,'2026-11-17T12:00:00Z','measured','profile of this machine',1,'',120,0.0040000000000000000832,0.020000000000000000416,NULL,0.91000000000000003108,24,'2419983534f5e8aea12b2d9654d1e4a2');
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
INSERT INTO coefficients VALUES(1,0,'phi.cudnn.forward.0',0.33333333333333331482,0.0,'1','fitted',0,10);
INSERT INTO coefficients VALUES(1,1,'phi.cudnn.forward.1',0.25,0.010000000000000000208,'1','default',1,11);
INSERT INTO coefficients VALUES(1,2,'phi.cudnn.forward.2',0.2000000000000000111,0.020000000000000000416,'1','fitted',0,12);
INSERT INTO coefficients VALUES(2,0,'phi.cudnn.forward.0',0.33333333333333331482,0.0,'1','fitted',0,10);
INSERT INTO coefficients VALUES(2,1,'phi.cudnn.forward.1',0.25,0.010000000000000000208,'1','default',1,11);
INSERT INTO coefficients VALUES(2,2,'phi.cudnn.forward.2',0.2000000000000000111,0.020000000000000000416,'1','fitted',0,12);
CREATE TABLE covariances (
  calibration_id  INTEGER NOT NULL REFERENCES calibrations (id),
  position        INTEGER NOT NULL,
  other_position  INTEGER NOT NULL,
  covariance      REAL NOT NULL,
  PRIMARY KEY (calibration_id, position, other_position)
) STRICT, WITHOUT ROWID;
INSERT INTO covariances VALUES(1,0,0,1.0000000000000000622e-09);
INSERT INTO covariances VALUES(1,0,1,5.0000000000000003113e-10);
INSERT INTO covariances VALUES(1,0,2,3.3333333333333337131e-10);
INSERT INTO covariances VALUES(1,1,0,2.5000000000000001556e-10);
INSERT INTO covariances VALUES(1,1,1,2.0000000000000000728e-10);
INSERT INTO covariances VALUES(1,1,2,1.6666666666666668565e-10);
INSERT INTO covariances VALUES(1,2,0,1.4285714285714285495e-10);
INSERT INTO covariances VALUES(1,2,1,1.2500000000000000778e-10);
INSERT INTO covariances VALUES(1,2,2,1.1111111111111111947e-10);
INSERT INTO covariances VALUES(2,0,0,1.0000000000000000622e-09);
INSERT INTO covariances VALUES(2,0,1,5.0000000000000003113e-10);
INSERT INTO covariances VALUES(2,0,2,3.3333333333333337131e-10);
INSERT INTO covariances VALUES(2,1,0,2.5000000000000001556e-10);
INSERT INTO covariances VALUES(2,1,1,2.0000000000000000728e-10);
INSERT INTO covariances VALUES(2,1,2,1.6666666666666668565e-10);
INSERT INTO covariances VALUES(2,2,0,1.4285714285714285495e-10);
INSERT INTO covariances VALUES(2,2,1,1.2500000000000000778e-10);
INSERT INTO covariances VALUES(2,2,2,1.1111111111111111947e-10);
CREATE TABLE IF NOT EXISTS "environments" (
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
  module_loading     TEXT NOT NULL,     -- lazy or eager; '' where it is not known, and on a cpu
  UNIQUE (gpu, architecture, memory_total_bytes, ecc, mig, driver, cuda, cublas, cudnn, cufft,
          framework, framework_version, os, module_loading)
) STRICT;
INSERT INTO environments VALUES(1,'NVIDIA A100-SXM4-40GB|sm_80|40 GiB|ecc on|mig off','driver 550.54.15|cuda 12.4|cublas 12.4.5|cudnn 9.1.0|cufft 11.2.1|pytorch 2.6.0','NVIDIA A100-SXM4-40GB','sm_80',42297786368,1,'','550.54.15','12.4','12.4.5','9.1.0','11.2.1','pytorch','2.6.0','Debian GNU/Linux 12','');
INSERT INTO environments VALUES(2,'virtual:tiny|virtual|0 GiB|ecc off|mig off','driver |cuda |cublas |cudnn |cufft |memfathom ','virtual:tiny','virtual',0,0,'','','','','','','memfathom','','','');
INSERT INTO environments VALUES(3,'NVIDIA A100-SXM4-40GB|sm_80|40 GiB|ecc on|mig off','driver 570.86.10|cuda 12.4|cublas 12.4.5|cudnn 9.7.1|cufft 11.2.1|pytorch 2.6.0','NVIDIA A100-SXM4-40GB','sm_80',42297786368,1,'','570.86.10','12.4','12.4.5','9.7.1','11.2.1','pytorch','2.6.0','Debian GNU/Linux 12','');
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
INSERT INTO observations VALUES(1,'7375dc999498d98775cb977025e4f817','{"model":{"preset":"gpt2"},"training":{"batch_size":1}}','device',1000000000,NULL,'a100-40gb','','','','pytorch','','team','gpt2','it''s "quoted"');
INSERT INTO observations VALUES(2,'01efc9140a399e22a32685b15bee2265','{"model":{"preset":"gpt2"},"training":{"batch_size":3}}','device',NULL,0,'a100-40gb','','','','pytorch','','team','gpt2','it''s "quoted"');
CREATE TABLE ratio_groups (
  calibration_id INTEGER NOT NULL REFERENCES calibrations (id),
  position       INTEGER NOT NULL,
  group_name     TEXT NOT NULL,
  PRIMARY KEY (calibration_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO ratio_groups VALUES(1,0,'');
INSERT INTO ratio_groups VALUES(1,1,'conv');
INSERT INTO ratio_groups VALUES(1,2,'mlp');
INSERT INTO ratio_groups VALUES(2,0,'');
INSERT INTO ratio_groups VALUES(2,1,'conv');
INSERT INTO ratio_groups VALUES(2,2,'mlp');
CREATE TABLE ratios (
  calibration_id INTEGER NOT NULL,
  group_position INTEGER NOT NULL,
  position       INTEGER NOT NULL,
  ratio          REAL NOT NULL,
  PRIMARY KEY (calibration_id, group_position, position),
  FOREIGN KEY (calibration_id, group_position) REFERENCES ratio_groups (calibration_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO ratios VALUES(1,0,0,0.9000000000000000222);
INSERT INTO ratios VALUES(1,0,1,0.96666666666666667406);
INSERT INTO ratios VALUES(1,0,2,1.0333333333333334369);
INSERT INTO ratios VALUES(1,1,0,0.93333333333333334813);
INSERT INTO ratios VALUES(1,1,1,1.0);
INSERT INTO ratios VALUES(1,1,2,1.0666666666666666518);
INSERT INTO ratios VALUES(2,0,0,0.9000000000000000222);
INSERT INTO ratios VALUES(2,0,1,0.96666666666666667406);
INSERT INTO ratios VALUES(2,0,2,1.0333333333333334369);
INSERT INTO ratios VALUES(2,1,0,0.93333333333333334813);
INSERT INTO ratios VALUES(2,1,1,1.0);
INSERT INTO ratios VALUES(2,1,2,1.0666666666666666518);
CREATE TABLE runs (
  id             INTEGER PRIMARY KEY,
  uid            TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL REFERENCES environments (id),
  plan           TEXT NOT NULL,         -- quick, standard, full, ...
  started        TEXT NOT NULL,         -- ISO 8601, UTC
  finished       TEXT,                  -- NULL while it runs, and for good when it was interrupted
  program        TEXT NOT NULL,         -- the version of memfathom that measured
  nonce          TEXT NOT NULL          -- tells two runs apart that started in the same second
, cudnn_directory TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO runs VALUES(1,'1f6d57db8af46257b6e445c8133e9a32',1,'quick','2026-11-16T10:00:00Z','2026-11-16T10:05:00Z','0.1.0','0123456789abcdef','');
INSERT INTO runs VALUES(2,'17ee930e5a073e7b4d2d187b32798cb9',2,'quick','2026-11-16T11:00:00Z',NULL,'0.1.0','fedcba9876543210','');
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
INSERT INTO samples VALUES(1,'bf12a6656888fefffb0a757dbb1eb6b2',1,1,'conv/c64/b1/fp32','conv','{"model":{"input":{"shape":[3,224,224]},"layers":[{"in":3,"kernel":7,"out":64,"type":"conv2d"}]},"training":{"batch_size":1}}',0,'ok','',1000512,4194304,502097152,'nvml-process',0.0020000000000000000416,3,0.0010000000000000000208,'spread below 0.5 %');
INSERT INTO samples VALUES(2,'b500feb6186b495787ddf41bd15b0cbb',1,2,'conv/c64/b5/fp32','conv','{"model":{"input":{"shape":[3,224,224]},"layers":[{"in":3,"kernel":7,"out":64,"type":"conv2d"}]},"training":{"batch_size":5}}',1,'ok','',1002560,12582912,510485760,'nvml-process',0.0060000000000000001249,3,0.0010000000000000000208,'spread below 0.5 %');
INSERT INTO samples VALUES(3,'39d09c69545ed646720cc5c133b43a59',1,3,'conv/c64/b3/fp32','conv','{"model":{"input":{"shape":[3,224,224]},"layers":[{"in":3,"kernel":7,"out":64,"type":"conv2d"}]},"training":{"batch_size":3}}',0,'crashed','signal 11',1001536,8388608,NULL,'nvml-process',0.0040000000000000000832,3,0.0010000000000000000208,'spread below 0.5 %');
INSERT INTO samples VALUES(4,'7753a465a3e8dcbe2f7d24699239981b',2,1,'conv/c64/b2/fp32','conv','{"model":{"input":{"shape":[3,224,224]},"layers":[{"in":3,"kernel":7,"out":64,"type":"conv2d"}]},"training":{"batch_size":2}}',0,'ok','',1001024,6291456,504194304,'nvml-process',0.0030000000000000000624,3,0.0010000000000000000208,'spread below 0.5 %');
CREATE TABLE stages (
  sample_id         INTEGER NOT NULL REFERENCES samples (id),
  position          INTEGER NOT NULL,
  stage             TEXT NOT NULL,
  device_used_bytes INTEGER NOT NULL,
  PRIMARY KEY (sample_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO stages VALUES(1,0,'baseline',0);
INSERT INTO stages VALUES(1,1,'context',41943041);
INSERT INTO stages VALUES(1,2,'cublas',83886082);
INSERT INTO stages VALUES(1,3,'cudnn',125829123);
INSERT INTO stages VALUES(1,4,'cufft',167772164);
INSERT INTO stages VALUES(1,5,'tensors',209715205);
INSERT INTO stages VALUES(1,6,'warmup',251658246);
INSERT INTO stages VALUES(1,7,'steps',293601287);
INSERT INTO stages VALUES(2,0,'baseline',0);
INSERT INTO stages VALUES(2,1,'context',41943045);
INSERT INTO stages VALUES(2,2,'cublas',83886090);
INSERT INTO stages VALUES(2,3,'cudnn',125829135);
INSERT INTO stages VALUES(2,4,'cufft',167772180);
INSERT INTO stages VALUES(2,5,'tensors',209715225);
INSERT INTO stages VALUES(2,6,'warmup',251658270);
INSERT INTO stages VALUES(2,7,'steps',293601315);
INSERT INTO stages VALUES(3,0,'baseline',0);
INSERT INTO stages VALUES(3,1,'context',41943043);
INSERT INTO stages VALUES(4,0,'baseline',0);
INSERT INTO stages VALUES(4,1,'context',41943042);
INSERT INTO stages VALUES(4,2,'cublas',83886084);
INSERT INTO stages VALUES(4,3,'cudnn',125829126);
INSERT INTO stages VALUES(4,4,'cufft',167772168);
INSERT INTO stages VALUES(4,5,'tensors',209715210);
INSERT INTO stages VALUES(4,6,'warmup',251658252);
INSERT INTO stages VALUES(4,7,'steps',293601294);
CREATE TABLE workspace_requests (
  sample_id       INTEGER NOT NULL REFERENCES samples (id),
  position        INTEGER NOT NULL,
  library         TEXT NOT NULL,
  operation       TEXT NOT NULL,
  shape           TEXT NOT NULL,
  workspace_bytes INTEGER NOT NULL,
  PRIMARY KEY (sample_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO workspace_requests VALUES(1,0,'cudnn','convolution forward','conv forward fp32 nchw x[1,3,224,224] w[64,3,7,7]',8388609);
INSERT INTO workspace_requests VALUES(1,1,'cudnn','convolution data_gradient','conv data_gradient fp32 nchw x[1,3,224,224] w[64,3,7,7]',8388609);
INSERT INTO workspace_requests VALUES(1,2,'cudnn','convolution weight_gradient','conv weight_gradient fp32 nchw x[1,3,224,224] w[64,3,7,7]',8388609);
INSERT INTO workspace_requests VALUES(1,3,'cudnn','convolution forward','conv forward fp32 nchw x[1,3,224,224] w[64,3,7,7]',8388609);
INSERT INTO workspace_requests VALUES(2,0,'cudnn','convolution forward','conv forward fp32 nchw x[5,3,224,224] w[64,3,7,7]',8388613);
INSERT INTO workspace_requests VALUES(2,1,'cudnn','convolution data_gradient','conv data_gradient fp32 nchw x[5,3,224,224] w[64,3,7,7]',8388613);
INSERT INTO workspace_requests VALUES(2,2,'cudnn','convolution weight_gradient','conv weight_gradient fp32 nchw x[5,3,224,224] w[64,3,7,7]',8388613);
INSERT INTO workspace_requests VALUES(2,3,'cudnn','convolution forward','conv forward fp32 nchw x[5,3,224,224] w[64,3,7,7]',8388613);
INSERT INTO workspace_requests VALUES(4,0,'cudnn','convolution forward','conv forward fp32 nchw x[2,3,224,224] w[64,3,7,7]',8388610);
INSERT INTO workspace_requests VALUES(4,1,'cudnn','convolution data_gradient','conv data_gradient fp32 nchw x[2,3,224,224] w[64,3,7,7]',8388610);
INSERT INTO workspace_requests VALUES(4,2,'cudnn','convolution weight_gradient','conv weight_gradient fp32 nchw x[2,3,224,224] w[64,3,7,7]',8388610);
INSERT INTO workspace_requests VALUES(4,3,'cudnn','convolution forward','conv forward fp32 nchw x[2,3,224,224] w[64,3,7,7]',8388610);
CREATE TABLE removals (
  id      INTEGER PRIMARY KEY,
  uid     TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL,                               -- the uid of a sample or an observation
  number  INTEGER NOT NULL,                            -- 1, 2, 3 for a subject; the highest one decides
  removed INTEGER NOT NULL CHECK (removed IN (0, 1)),  -- 0: restored
  created TEXT NOT NULL,
  reason  TEXT NOT NULL
) STRICT;
CREATE INDEX runs_by_environment ON runs (environment_id);
CREATE INDEX samples_by_run ON samples (run_id, number);
CREATE INDEX calibrations_by_environment ON calibrations (environment_id, created);
CREATE INDEX calibrations_by_name ON calibrations (name, created);
CREATE INDEX baselines_by_name ON baselines (name, created);
CREATE INDEX annotations_by_subject ON annotations (subject, created);
CREATE INDEX environments_by_key ON environments (device_key, stack_key);
CREATE INDEX environments_by_architecture ON environments (architecture);
CREATE INDEX removals_by_subject ON removals (subject, number);
COMMIT;
