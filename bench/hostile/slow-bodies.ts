/** Bodies that announce 5 MiB, send enough to count as large, and then next to nothing. */
import { bodyBytesMax, type Attack } from './attack.ts';
import { openBody } from './open-body.ts';
import { setTimeout as delay } from 'node:timers/promises';

const sentAtOnce = 70_000;
const pauseMs = 5000;

export const slowBodies: Attack = {
  name: 'slow bodies',
  what: 'four tenants with two scores each, which send 70 KB at once and then a byte every 5 s',
  tenants: 4,
  run: (attackers, until) =>
    Promise.all(
      attackers.flatMap((attacker) =>
        [1, 2].map(async () => {
          await using body = openBody(attacker, '/v1/score', [`content-length: ${bodyBytesMax}`], until);
          let goesOn = await body.write(' '.repeat(sentAtOnce));
          while (goesOn) {
            await Promise.race([delay(pauseMs), body.status()]);
            goesOn = await body.write(' ');
          }
          return body.status();
        }),
      ),
    ),
};
