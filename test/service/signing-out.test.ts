/** A session of the console that its owner ends: on the node that was asked, on every other one, and after a restart. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Admission } from '../../src/service/admission.ts';
import { sessionMs } from '../../src/service/session.ts';
import { admissionOfAnotherNode } from '../support/stages/another-node.ts';
import { openServiceStage, type ServiceStage, type TenantStage } from '../support/stages/service-stage.ts';

const ended = { code: 'authentication_failed', message: 'the session has ended; sign in again' };

let stage: ServiceStage;
let owner: TenantStage;
beforeEach(async () => {
  stage = await openServiceStage();
  owner = await stage.newTenant();
});
afterEach(() => stage[Symbol.asyncDispose]());

const open = () => stage.service.openSession(`Bearer ${owner.apiKey}`);

async function admit(by: Pick<Admission, 'admitSession'>, session: string): Promise<string> {
  const { tenant, permit } = await by.admitSession(session);
  permit.release();
  return tenant.id;
}

/** Other texts for the same bytes: the last letter has two spare bits, and readers take the letters of base64, too. */
function spellings(session: string): readonly string[] {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(session.at(-1)!);
  const others = [0, 1, 2, 3].map((low) => session.slice(0, -1) + alphabet[(last & ~3) | low]!);
  return [...others, session.replaceAll('-', '+').replaceAll('_', '/')];
}

it('ends at once, however it is spelt, and no other session of the key does', async () => {
  const session = await open();
  stage.clock.ms += 1;
  const other = await open();
  for (const text of spellings(session)) expect(await admit(stage.service, text)).toBe(owner.tenant.id);
  await stage.service.endSession(session);
  for (const text of spellings(session))
    await expect(stage.service.admitSession(text)).rejects.toMatchObject(ended);
  // A second time, and with a text that is no session.
  for (const text of [session, undefined, '', 'x'.repeat(session.length)])
    await stage.service.endSession(text);
  expect(await admit(stage.service, other)).toBe(owner.tenant.id);
  await stage.service.endSession(spellings(other)[0]);
  await expect(stage.service.admitSession(other)).rejects.toMatchObject(ended);
});

it('stays ended after a restart', async () => {
  const session = await open();
  stage.clock.ms += 1;
  const other = await open();
  await stage.service.endSession(session);
  await stage.service.drain();
  stage = await openServiceStage(stage.directory);
  await expect(stage.service.admitSession(session)).rejects.toMatchObject(ended);
  expect(await admit(stage.service, other)).toBe(owner.tenant.id);
});

it('ends on another node within two seconds', async () => {
  const node = await admissionOfAnotherNode(stage);
  const session = await open();
  await admit(node, session);
  await stage.service.endSession(session);
  await expect.poll(() => admit(node, session).catch(({ message }) => message)).toBe(ended.message);
});

it('is not remembered if it ended by itself, nor looked up if nobody signed it', async () => {
  const session = await open();
  const looked: string[] = [];
  const find = stage.catalog.hasSessionEnded.bind(stage.catalog);
  stage.catalog.hasSessionEnded = async (digest) => {
    looked.push(Buffer.from(digest).toString('hex'));
    return find(digest);
  };
  const forged = `${session.slice(0, -2)}AA`;
  await expect(stage.service.admitSession(forged)).rejects.toMatchObject(ended);
  await stage.service.endSession(forged);
  stage.clock.ms += sessionMs;
  await expect(stage.service.admitSession(session)).rejects.toMatchObject(ended);
  await stage.service.endSession(session);
  expect(looked).toEqual([]);
  stage.clock.ms -= sessionMs;
  expect(await admit(stage.service, session)).toBe(owner.tenant.id);
});
