/** Writes the alert rules and the dashboard of this folder; a test compares them. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { dashboard, dashboardFile } from './dashboard.ts';
import { rules, rulesFile } from './rules.ts';

writeFileSync(path.join(import.meta.dirname, rulesFile), rules());
writeFileSync(path.join(import.meta.dirname, dashboardFile), dashboard());
