/**
 * Makes a program the next version's: loaded before the program, by `--import`, it adds planted migrations, up to the
 * one that `TEST_MIGRATION` names, to what the program knows.
 */
import { catalogMigrations, type Migration } from '../../../src/catalog/postgres/schema.ts';
import { expanding, lying } from './planted-migrations.ts';

const planted = new Map([
  ['expanding', [expanding]],
  ['lying', [expanding, lying]],
]).get(process.env['TEST_MIGRATION'] ?? '');
if (planted === undefined) throw new Error('TEST_MIGRATION names no migration');
(catalogMigrations as Migration[]).push(...planted);
