/**
 * JSON with its SHA-256, for small files of derived data. Without it a flipped bit may leave JSON that reads well and says
 * something else. The content of such a file is `{"sha256":"<64 hexadecimal digits>","data":<JSON>}`, to the byte.
 */
import { createHash } from 'node:crypto';
import { withCode } from '../../system-errors.ts';

const pattern = /^\{"sha256":"([0-9a-f]{64})","data":(.*)\}$/s;

export function checkedJson(data: unknown): string {
  const text = JSON.stringify(data);
  return `{"sha256":"${sha256(text)}","data":${text}}`;
}

/** @throws an error with code `corrupt` unless the content is as it was written. */
export function readCheckedJson(content: string): unknown {
  const [, digest, text = ''] = pattern.exec(content) ?? [];
  if (digest !== sha256(text)) throw withCode('corrupt', 'is damaged: its checksum is another');
  return JSON.parse(text);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
