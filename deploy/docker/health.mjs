/** `health.mjs http://...`, or `health.mjs host:port` for an encoder: exits 0 when what answers there says that it is well. */
import { credentials, makeGenericClientConstructor } from '@grpc/grpc-js';
import { service } from 'grpc-health-check';

const waitMs = 4_000;
const [address = ''] = process.argv.slice(2);

const answer = address.includes('://') ? await overHttp() : await overGrpc();
if (answer !== undefined) process.stderr.write(`${address}: ${answer}\n`);
process.exit(answer === undefined ? 0 : 1);

async function overHttp() {
  try {
    const { status } = await fetch(address, { signal: AbortSignal.timeout(waitMs) });
    return status === 200 ? undefined : `status ${status}`;
  } catch (error) {
    return error.cause?.message ?? error.message;
  }
}

function overGrpc() {
  const Client = makeGenericClientConstructor(service, 'grpc.health.v1.Health');
  const client = new Client(address, credentials.createInsecure());
  return new Promise((resolve) => {
    client.check({ service: '' }, { deadline: Date.now() + waitMs }, (error, reply) => {
      if (error) resolve(error.message);
      else resolve(reply.status === 'SERVING' ? undefined : reply.status);
    });
  });
}
