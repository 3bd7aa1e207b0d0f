-- What version 0.2.0 added.
ALTER TABLE experiments ADD COLUMN term INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN owner TEXT;
PRAGMA user_version = 2;
