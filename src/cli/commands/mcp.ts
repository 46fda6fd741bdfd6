/** `maxsimd mcp`: its words. */
import type { Command } from 'commander';
import { CommandFailure } from '../failure.ts';
import type { ProgramEnvironment } from './environment.ts';
import {
  countFromZero,
  endpointFrom,
  serviceFrom,
  withEndpointOptions,
  type ServiceOptions,
} from './options.ts';

interface McpOptions extends ServiceOptions {
  readonly write?: true;
  readonly http?: number;
  readonly host: string;
  readonly allowOrigin?: readonly string[];
}

export function addMcp(program: Command, environment: ProgramEnvironment): void {
  withEndpointOptions(
    program
      .command('mcp')
      .description('offer search to agents by the Model Context Protocol, over stdio or HTTP')
      .option('--write', 'also offer tools that store and delete documents')
      .option('--http <port>', 'serve HTTP at /mcp; each caller sends a key as bearer token', countFromZero)
      .option('--host <address>', 'address to listen at with --http', '127.0.0.1')
      .option('--allow-origin <origin...>', 'origins of browsers that may call with --http (default: none)'),
    30,
  ).action(async (options: McpOptions) => {
    const { http: port, host, allowOrigin: origins = [] } = options;
    const offer = { version: environment.version, write: options.write === true };
    if (port !== undefined && options.key !== undefined)
      throw new CommandFailure('usage_error', '--key has no place with --http: each caller sends a key');
    const { serveHttp, serveStdio } = await import('../mcp/serve.ts');
    if (port === undefined) return serveStdio(endpointFrom(options, environment), offer, environment.stdin);
    return serveHttp({
      service: serviceFrom(options, environment),
      offer,
      host,
      port,
      origins,
      interruption: environment.interruption(),
      onListening: (url) => void environment.stderr.write(`maxsimd: tools for agents at ${url}\n`),
    });
  });
}
