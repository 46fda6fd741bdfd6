/** Requests that hostile or careless clients can send within the limits of their tenants. */
import type { Attack } from './attack.ts';
import { expensiveWork } from './expensive-work.ts';
import { requests } from './requests.ts';
import { slowBodies } from './slow-bodies.ts';
import { tinyChunks } from './tiny-chunks.ts';

export const attacks: readonly Attack[] = [...requests, ...expensiveWork, tinyChunks, slowBodies];
