-- Schema 2: how CUDA loads kernels (an environment's), and the cuDNN that the framework loaded (a run's).
-- SQLite cannot change a UNIQUE constraint, so the table is made anew; ids stay, and with them what refers to them.

CREATE TABLE new_environments (
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
INSERT INTO new_environments
  SELECT id, device_key, stack_key, gpu, architecture, memory_total_bytes, ecc, mig, driver, cuda, cublas, cudnn, cufft,
         framework, framework_version, os, '' FROM environments;
DROP TABLE environments;
ALTER TABLE new_environments RENAME TO environments;
CREATE INDEX environments_by_key ON environments (device_key, stack_key);
CREATE INDEX environments_by_architecture ON environments (architecture);

-- The folder of the cuDNN that the framework loaded, which need not be the system's; '' where it is not known.
ALTER TABLE runs ADD COLUMN cudnn_directory TEXT NOT NULL DEFAULT '';
