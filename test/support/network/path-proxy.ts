/** A proxy that has a service behind a path, and strips the path, as nginx and HAProxy do. */
import { once } from 'node:events';
import { createServer, request as ask } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface PathProxy {
  /** Ends with the path. */
  readonly url: string;
  /** Targets beside the path, which the proxy refuses with 404. */
  readonly strays: string[];
  close(): Promise<void>;
}

/** `path`: `/maxsimd`. `target`: the address that replaces it. */
export async function startPathProxy(path: string, target: string): Promise<PathProxy> {
  const strays: string[] = [];
  const server = createServer((request, response) => {
    const { url = '', method, headers } = request;
    if (!url.startsWith(`${path}/`)) {
      strays.push(url);
      response.writeHead(404).end();
      return;
    }
    const onward = ask(`${target}${url.slice(path.length)}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    strays,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
