/**
 * Makes a program act as the next version. It is loaded before the program by `--import`, and adds planted migrations to those
 * that the program knows, up to the one that `TEST_MIGRATION` names.
 */
import { catalogMigrations, type Migration } from '../../../src/catalog/postgres/schema.ts';
import { expanding, lying } from './planted-migrations.ts';

const planted = new Map([
  ['expanding', [expanding]],
  ['lying', [expanding, lying]],
]).get(process.env['TEST_MIGRATION'] ?? '');
if (planted === undefined) throw new Error('TEST_MIGRATION names no migration');
(catalogMigrations as Migration[]).push(...planted);
