-- A store as the first version made it.
CREATE TABLE experiments (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL,
    seq INTEGER NOT NULL, charged INTEGER NOT NULL, at INTEGER NOT NULL,
    lineage INTEGER NOT NULL
) STRICT;
CREATE TABLE events (
    experiment INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
    at INTEGER NOT NULL, decision TEXT, body TEXT NOT NULL, state BLOB, expires INTEGER,
    PRIMARY KEY (experiment, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_decision ON events (experiment, decision) WHERE decision IS NOT NULL;
CREATE INDEX events_by_expiry ON events (experiment, expires) WHERE expires IS NOT NULL;
CREATE TABLE spending (
    experiment INTEGER NOT NULL, person TEXT NOT NULL, period TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0), PRIMARY KEY (experiment, person, period)
) STRICT, WITHOUT ROWID;
CREATE TABLE snapshots (
    experiment INTEGER PRIMARY KEY, seq INTEGER NOT NULL, about TEXT NOT NULL,
    state BLOB NOT NULL
) STRICT;
CREATE TABLE open_decisions (
    experiment INTEGER NOT NULL, decision TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (experiment, decision)
) STRICT, WITHOUT ROWID;
INSERT INTO experiments  VALUES (1, 'news', '{"policy": "toy"}', 3, 2, 1700000000300, 77);
INSERT INTO events VALUES (1, 1, 'decide', 1700000000100, 'first', '{"round":0,"option":1,"probability":1.0,"shown":true}', NULL, NULL);
INSERT INTO events VALUES (1, 2, 'learn', 1700000000200, 'first', '{"value":1,"released":[0.5]}', x'00ff', 1700000900000);
INSERT INTO events VALUES (1, 3, 'decide', 1700000000300, 'second', '{"round":1,"option":0,"probability":0.5,"shown":true}', NULL, NULL);
INSERT INTO spending VALUES (1, 'ada', 'ever', 2000000);
INSERT INTO snapshots VALUES (1, 2, '{"rounds": 1}', x'00ff');
INSERT INTO open_decisions VALUES (1, 'second', '{"id":"second","round":1}');
PRAGMA application_id = 502813;
PRAGMA user_version = 1;
