/** Three nodes that tests use like one server: each request goes to another node than the one before. */
import { startHaproxy } from '../../../deploy/local/haproxy.ts';
import { installServers } from '../../../deploy/local/install.ts';
import { freePort } from '../../../deploy/local/free-port.ts';
import { startServer, type ServerOptions, type ServerProcess } from '../running/server.ts';

export async function startNodes(options: ServerOptions): Promise<ServerProcess> {
  const { haproxy: program } = await installServers();
  const nodes = await Promise.all([1, 2, 3].map(() => startServer(options)));
  const [first] = nodes;
  if (first === undefined) throw new Error('there are nodes');
  const balancer = await startHaproxy({
    program,
    directory: first.scratch.temporary,
    port: await freePort(),
    nodes: nodes.map(({ url }) => Number(new URL(url).port)),
    balance: 'turns',
  });
  const end = async (stop: (node: ServerProcess) => ReturnType<ServerProcess['stop']>) => {
    const [exit] = await Promise.all(nodes.map(stop));
    await balancer.stop();
    for (const { scratch } of nodes.slice(1)) await scratch.remove();
    return exit!;
  };
  return {
    ...first,
    url: `http://127.0.0.1:${balancer.port}`,
    output: () => ({
      stdout: nodes.map((node) => node.output().stdout).join(''),
      stderr: nodes.map((node) => node.output().stderr).join(''),
    }),
    signal: (name) => nodes.forEach((node) => node.signal(name)),
    stop: () => end((node) => node.stop()),
    kill: () => end((node) => node.kill()),
  };
}
