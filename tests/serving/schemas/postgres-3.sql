-- What was added after version 0.2.0.
ALTER TABLE experiments ADD COLUMN counted BIGINT NOT NULL DEFAULT 0;
UPDATE experiments SET counted = at;
CREATE TABLE keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL);
INSERT INTO keys (name, fingerprint)
    SELECT 'pseudonyms', pseudonyms FROM tacit_store WHERE pseudonyms IS NOT NULL;
ALTER TABLE tacit_store DROP COLUMN pseudonyms;
UPDATE tacit_store SET version = 3;
