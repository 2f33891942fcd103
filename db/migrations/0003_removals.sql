-- Schema 3: samples and observations that are set aside. A removal is a row of its own, and so is its undoing: what was measured
-- stays as it was stored, and merging databases stays a union of sets.

CREATE TABLE removals (
  id      INTEGER PRIMARY KEY,
  uid     TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL,                               -- the uid of a sample or an observation
  number  INTEGER NOT NULL,                            -- 1, 2, 3 for a subject; the highest one decides
  removed INTEGER NOT NULL CHECK (removed IN (0, 1)),  -- 0: restored
  created TEXT NOT NULL,
  reason  TEXT NOT NULL
) STRICT;
CREATE INDEX removals_by_subject ON removals (subject, number);
