/** Migrations of a made-up next version, for tests of upgrades. */
import { catalogMigrations, type Migration } from '../../../src/catalog/postgres/schema.ts';

const known = catalogMigrations.length;

/** The first step adds the columns that the next version needs. A trigger fills them, so this version works too. */
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

/** The second step removes a column that only older versions use. */
export const contracting: Migration = {
  worksWith: known + 1,
  sql: 'ALTER TABLE versions RENAME COLUMN metadata TO attributes',
};

/** A wrong migration: it removes the column although it claims to work with this version. */
export const lying: Migration = { ...contracting, worksWith: known };
