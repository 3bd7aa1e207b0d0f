-- What was added after version 0.2.0.
ALTER TABLE experiments ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;
UPDATE experiments SET counted = at;
CREATE TABLE keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA user_version = 3;
