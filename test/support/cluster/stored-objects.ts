/** Checks an object store: every object that the catalog names is intact, and after the garbage is collected no other is left. */
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import { removeGarbage } from '../../../src/service/garbage.ts';
import { newDirectory } from '../machine/temporary-directory.ts';
import { queryDatabase } from './servers.ts';

export interface Stored {
  /** The URL of the catalog's database. */
  readonly url: string;
  readonly catalog: ClusterCatalog;
  readonly objects: ObjectStore;
  /** `s3://bucket/prefix`. The AWS variables of the environment say where that is. */
  readonly blobsUrl: string;
}

interface NamedObject {
  readonly key: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Live versions that do not lie in exactly one sealed segment. */
const liveElsewhere = `SELECT FROM versions v WHERE v.died = 0 AND 1 <> (
  SELECT count(*) FROM placements p JOIN segments s ON s.id = p.segment_id
  WHERE p.version_id = v.version_id AND s.state = 'sealed')`;
const placedNowhere = `SELECT FROM placements p WHERE NOT EXISTS (SELECT FROM segments s WHERE s.id = p.segment_id)`;

/**
 * Checks the objects and returns their number. No node may run meanwhile. `lostCommits`: the catalog has lost commits, so there
 * may be objects that it does not name.
 */
export async function assertStoredWhole(stored: Stored, lostCommits = false): Promise<number> {
  const { url, catalog, objects, blobsUrl } = stored;
  const named = await namedObjects(url);
  const directory = await newDirectory();
  for (const { key, bytes, sha256 } of named) {
    const file = path.join(directory, 'object');
    // It rejects if the object is missing or has another SHA-256.
    await objects.getFile(key, file, { bytes, sha256 });
    await rm(file);
  }
  await queryDatabase(url, `UPDATE segments SET since = since - interval '2 days', collected_at = NULL`);
  await removeGarbage(catalog, objects, 0);
  const present = new Set(await listed(blobsUrl));
  present.delete('ping');
  const names = new Set(named.map(({ key }) => key));
  const lost = await queryDatabase(url, liveElsewhere);
  const leftBehind = await queryDatabase(url, placedNowhere);
  if (lost.length + leftBehind.length > 0)
    throw new Error(`${lost.length} live versions, ${leftBehind.length} places in no segment`);
  const unnamed = lostCommits ? [] : [...present].filter((key) => !names.has(key));
  const missing = [...names].filter((key) => !present.has(key));
  if (unnamed.length + missing.length > 0)
    throw new Error(`objects that nobody names: ${unnamed.join(' ')}; that are gone: ${missing.join(' ')}`);
  return names.size;
}

async function namedObjects(url: string): Promise<readonly NamedObject[]> {
  const rows = await queryDatabase(
    url,
    `SELECT blob || (file->>'ending') AS key, (file->>'bytes')::integer AS bytes, file->>'sha256' AS sha256
      FROM segments, jsonb_array_elements(files) AS file WHERE state = 'sealed'`,
  );
  return rows as unknown as readonly NamedObject[];
}

async function listed(blobsUrl: string): Promise<readonly string[]> {
  const { host: bucket, pathname } = new URL(blobsUrl);
  const prefix = `${pathname.slice(1)}/`;
  const client = new S3Client({ forcePathStyle: true });
  const keys: string[] = [];
  try {
    for (let token: string | undefined; ;) {
      const page = await client.send(
        new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ContinuationToken: token }),
      );
      for (const { Key: key = '' } of page.Contents ?? []) keys.push(key.slice(prefix.length));
      token = page.NextContinuationToken;
      if (token === undefined) return keys;
    }
  } finally {
    client.destroy();
  }
}
