/** What a program of the next version knows beyond this one. */
import { catalogMigrations, type Migration } from '../../../src/catalog/postgres/schema.ts';

const known = catalogMigrations.length;

/** The first step: what the next version needs is there beside what this one uses, and is kept by a trigger. */
export const expanding: Migration = {
  worksWith: known,
  sql: `
SELECT pg_sleep(0.5);
ALTER TABLE versions ADD COLUMN characters integer NOT NULL DEFAULT 0;
CREATE FUNCTION count_characters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.characters := length(NEW.metadata);
  RETURN NEW;
END $$;
CREATE TRIGGER characters_counted BEFORE INSERT ON versions FOR EACH ROW EXECUTE FUNCTION count_characters();
UPDATE versions SET characters = length(metadata);
CREATE INDEX versions_by_characters ON versions (index_key, characters);
ALTER TABLE indexes ADD COLUMN alias text;
CREATE TABLE migrated_once (at timestamptz NOT NULL DEFAULT now());
INSERT INTO migrated_once DEFAULT VALUES;`,
};

/** The second: what only older versions used goes. */
export const contracting: Migration = {
  worksWith: known + 1,
  sql: 'ALTER TABLE versions RENAME COLUMN metadata TO attributes',
};

/** Takes away what it says it keeps. */
export const lying: Migration = { ...contracting, worksWith: known };
