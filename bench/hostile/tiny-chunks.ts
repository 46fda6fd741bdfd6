/** Bodies in chunks of one byte (RFC 9112 section 7.1): each is an object of its own to who keeps chunks. */
import { bodyBytesMax, numbers, type Attack } from './attack.ts';
import { openBody } from './open-body.ts';

/** Chunks written in one go. */
const chunksAtOnce = 10_000;

export const tinyChunks: Attack = {
  name: 'tiny chunks',
  what: 'four tenants with two scores each, whose 5 MiB come in chunks of one byte',
  tenants: 4,
  run: (attackers, until) => {
    const chunks = Buffer.from('1\r\n \r\n'.repeat(chunksAtOnce));
    return Promise.all(
      attackers.flatMap((attacker) =>
        [1, 2].map(async () => {
          await using body = openBody(attacker, '/v1/score', ['transfer-encoding: chunked'], until);
          for (const _ of numbers(bodyBytesMax / chunksAtOnce)) {
            if (!(await body.write(chunks))) break;
          }
          await body.write('0\r\n\r\n');
          return body.status();
        }),
      ),
    );
  },
};
