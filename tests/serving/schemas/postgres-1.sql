-- A store in the first version of the tables.
CREATE TABLE tacit_store (
    one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), version INTEGER NOT NULL, secret BYTEA NOT NULL
);
INSERT INTO tacit_store (version, secret) VALUES (1, '\x0102');
CREATE TABLE experiments (
    id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL,
    seq BIGINT NOT NULL, charged BIGINT NOT NULL, at BIGINT NOT NULL,
    lineage BIGINT NOT NULL
);
CREATE TABLE events (
    experiment BIGINT NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL,
    at BIGINT NOT NULL, decision TEXT, body TEXT NOT NULL, state BYTEA, expires BIGINT,
    PRIMARY KEY (experiment, seq)
);
CREATE INDEX events_by_decision ON events (experiment, decision) WHERE decision IS NOT NULL;
CREATE INDEX events_by_expiry ON events (experiment, expires) WHERE expires IS NOT NULL;
CREATE TABLE spending (
    experiment BIGINT NOT NULL, person TEXT NOT NULL, period TEXT NOT NULL,
    amount BIGINT NOT NULL CHECK (amount >= 0), PRIMARY KEY (experiment, person, period)
);
CREATE TABLE snapshots (
    experiment BIGINT PRIMARY KEY, seq BIGINT NOT NULL, about TEXT NOT NULL,
    state BYTEA NOT NULL
);
CREATE TABLE open_decisions (
    experiment BIGINT NOT NULL, decision TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (experiment, decision)
);
INSERT INTO experiments OVERRIDING SYSTEM VALUE VALUES (1, 'news', '{"policy": "toy"}', 3, 2, 1700000000300, 77);
INSERT INTO events VALUES (1, 1, 'decide', 1700000000100, 'first', '{"round":0,"option":1,"probability":1.0,"shown":true}', NULL, NULL);
INSERT INTO events VALUES (1, 2, 'learn', 1700000000200, 'first', '{"value":1,"released":[0.5]}', '\x00ff', 1700000900000);
INSERT INTO events VALUES (1, 3, 'decide', 1700000000300, 'second', '{"round":1,"option":0,"probability":0.5,"shown":true}', NULL, NULL);
INSERT INTO spending VALUES (1, 'ada', 'ever', 2000000);
INSERT INTO snapshots VALUES (1, 2, '{"rounds": 1}', '\x00ff');
INSERT INTO open_decisions VALUES (1, 'second', '{"id":"second","round":1}');
SELECT setval(pg_get_serial_sequence('experiments', 'id'), 1);
