-- What version 0.2.0 added; the key of its pseudonyms is 32 zeros.
ALTER TABLE experiments ADD COLUMN term BIGINT NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN owner TEXT;
CREATE TABLE servers (
    id TEXT PRIMARY KEY, address TEXT NOT NULL, backend INTEGER NOT NULL,
    seen TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE tokens (name TEXT PRIMARY KEY, body TEXT NOT NULL);
ALTER TABLE tacit_store ADD COLUMN pseudonyms TEXT;
UPDATE tacit_store SET version = 2, pseudonyms = '9c9b7e350db5a9311644c948a0bc4fe0';
