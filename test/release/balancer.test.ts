/**
 * HAProxy runs the sample of `deploy/`, with its ports changed, before stand-ins for nodes: indexes keep to nodes, a node that is
 * down is passed over, nothing that a node may have done is sent to another, and what the API allows comes through.
 */
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startHaproxy } from '../../deploy/local/haproxy.ts';
import { installServers } from '../../deploy/local/install.ts';
import { freePort } from '../../deploy/local/free-port.ts';
import type { RunningServer } from '../../deploy/local/server-process.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

const names = ['node-1', 'node-2', 'node-3'] as const;

interface StandIn {
  readonly name: string;
  readonly port: number;
  /** Requests that came, as `POST /path 12` with the bytes of their bodies. */
  readonly seen: string[];
  /** Ends connections in place of answering, as a node that is killed. */
  cutsConnections: boolean;
  listen(): Promise<void>;
  close(): Promise<void>;
}

function standIn(name: string, port: number): StandIn {
  let server: Server;
  const node: StandIn = {
    name,
    port,
    seen: [],
    cutsConnections: false,
    async listen() {
      server = createServer((message, answer) => {
        if (message.url === '/readyz') {
          answer.end('{}');
          return;
        }
        let bytes = 0;
        message.on('data', (part: Buffer) => void (bytes += part.length));
        message.on('end', () => {
          node.seen.push(`${message.method} ${message.url} ${bytes}`);
          if (node.cutsConnections) message.socket.destroy();
          else answer.setHeader('x-node', name).end(JSON.stringify(message.headersDistinct));
        });
      });
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return node;
}

const bodyBytesMax = 5 * 1024 * 1024;

describe('the sample for HAProxy', () => {
  const nodes: StandIn[] = [];
  let balancer: RunningServer;

  beforeAll(async () => {
    const { haproxy: program } = await installServers();
    const directory = await newDirectory();
    for (const node of names) nodes.push(standIn(node, await freePort()));
    for (const node of nodes) await node.listen();
    const port = await freePort();
    balancer = await startHaproxy({
      program,
      directory,
      port,
      nodes: nodes.map((node) => node.port),
      balance: 'index',
    });
    await placesOnceUp('node-1', 'node-2', 'node-3');
  });

  afterAll(async () => {
    await balancer?.stop();
    for (const node of nodes) await node.close();
  });

  /** With HTTP as a client sends it: `fetch` would change the path. */
  async function send(
    url: string,
    body?: Buffer,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; node: string; text: string }> {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = { port: balancer.port, path: url, method: body === undefined ? 'GET' : 'POST' };
      request({ ...options, headers, agent: false }, resolve)
        .on('error', reject)
        .end(body);
    });
    let text = '';
    for await (const part of answer.setEncoding('utf8')) text += part as string;
    return { status: answer.statusCode ?? 0, node: String(answer.headers['x-node']), text };
  }

  const indexes = Array.from({ length: 60 }, (_id, place) => `8d0e${place}-${place * 7919}`);
  const body = Buffer.from('{}');

  async function placesOf(): Promise<ReadonlyMap<string, string>> {
    const places = new Map<string, string>();
    for (const id of indexes) {
      const { status, node, text } = await send(`/v1/indexes/${id}/search`, body);
      expect(status, text).toBe(200);
      places.set(id, node);
    }
    return places;
  }

  /** HAProxy finds out by checks each second. */
  async function placesOnceUp(...up: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const endsAt = performance.now() + 20_000;
    let before: ReadonlyMap<string, string> = new Map();
    for (;;) {
      const places = await placesOf();
      const used = new Set(places.values());
      const stays = indexes.every((id) => places.get(id) === before.get(id));
      if ((stays && up.every((node) => used.has(node))) || performance.now() > endsAt) return places;
      before = places;
      await pause(1_200);
    }
  }

  it('keeps an index to a node, spreads indexes, and requests of none', async () => {
    const places = await placesOf();
    expect(new Set(places.values()).size).toBe(names.length);
    for (const id of indexes) {
      for (const rest of ['', '/documents/a?x=1', '/search'])
        expect((await send(`/v1/indexes/${id}${rest}`)).node).toBe(places.get(id));
    }
    const others = new Set<string>();
    for (let turn = 0; turn < 30; turn += 1) others.add((await send('/v1/score', body)).node);
    expect(others.size).toBe(names.length);
  });

  it('lets the largest body and the longest path through, as they are', async () => {
    const [id] = indexes;
    const docId = '%F0%9F%90%8B'.repeat(254) + '%2F';
    const document = `/v1/indexes/${id}/documents/${docId}`;
    expect((await send(document, Buffer.alloc(bodyBytesMax, 32))).status).toBe(200);
    expect(nodes.flatMap(({ seen }) => seen)).toContain(`POST ${document} ${bodyBytesMax}`);
  });

  it('lets names through as they are, and keeps a name to a node however it is encoded', async () => {
    const places = new Set<string>();
    for (let place = 0; place < 30; place += 1) {
      const written = [`name:a%2Fb%25-${place}`, `name%3Aa%2fb%25-${place}`, `%6Eame:%61%2Fb%25-${place}`];
      const answers = await Promise.all(written.map((name) => send(`/v1/indexes/${name}/search`, body)));
      const seen = nodes.flatMap((node) => node.seen);
      for (const name of written) expect(seen).toContain(`POST /v1/indexes/${name}/search ${body.length}`);
      const used = new Set(answers.map(({ node }) => node));
      expect(used.size).toBe(1);
      for (const node of used) places.add(node);
    }
    expect(places.size).toBe(names.length);
  });

  it('says itself who sent a request and how, whatever the client says', async () => {
    const claims = {
      'X-Forwarded-For': '203.0.113.7',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'evil.example',
      'X-Forwarded-Port': '443',
      'X-Real-IP': '203.0.113.7',
      Forwarded: 'for=203.0.113.7;proto=https',
    };
    for (const headers of [{}, claims]) {
      const { text } = await send('/v1/usage', undefined, headers);
      const seen = Object.entries(JSON.parse(text) as Record<string, string[]>).filter(([header]) =>
        /^(forwarded|x-forwarded-.*|x-real-ip)$/.test(header),
      );
      expect(Object.fromEntries(seen)).toEqual({
        'x-forwarded-for': ['127.0.0.1'],
        'x-forwarded-proto': ['http'],
      });
    }
  });

  it('passes a node that is down over, and leaves the indexes of others where they are', async () => {
    const before = await placesOf();
    await nodes[0]!.close();
    // A request on a connection that ends at that moment is refused, as it should be.
    await pause(100);
    const meanwhile = await placesOf();
    for (const [id, node] of before) {
      if (node === 'node-1') expect(meanwhile.get(id)).not.toBe('node-1');
      else expect(meanwhile.get(id)).toBe(node);
    }
    await nodes[0]!.listen();
    await expect.poll(placesOf).toEqual(before);
  });

  it('sends nothing twice that a node may have done', async () => {
    for (const node of nodes) {
      node.seen.length = 0;
      node.cutsConnections = true;
    }
    const { status } = await send(`/v1/indexes/${indexes[0]}/documents`, body);
    for (const node of nodes) node.cutsConnections = false;
    expect(status).toBeGreaterThanOrEqual(502);
    expect(nodes.flatMap(({ seen }) => seen)).toHaveLength(1);
  });
});
