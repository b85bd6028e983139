/** Another client of the daemon: a WebSocket in its own page. */

import type { Page } from 'playwright-core';
import type { Served } from './harness.ts';

interface Answer {
  result?: unknown;
  error?: { message: string; data?: { kind?: string } };
}

interface PeerWindow {
  peer: {
    socket: WebSocket;
    last: number;
    waits: Map<number, (answer: Answer) => void>;
    heard: { method: string; params: Record<string, unknown> }[];
  };
}

export class Peer {
  private constructor(private readonly page: Page) {}

  static async connect(served: Served, capabilities: object = {}): Promise<Peer> {
    // The page itself gets no token, so only the peer's own socket is connected.
    const watched = await served.open('');
    await watched.page.waitForLoadState();
    const { page } = watched;
    const token = /t=([0-9a-f]+)/.exec(served.url)?.[1] ?? '';
    await page.evaluate((token) => {
      const socket = new WebSocket(`ws://${location.host}/ws`);
      const peer: PeerWindow['peer'] = { socket, last: 0, waits: new Map(), heard: [] };
      (window as unknown as PeerWindow).peer = peer;
      socket.onmessage = (event) => {
        const message = JSON.parse(String(event.data)) as Answer & {
          id?: number;
          method?: string;
          params?: Record<string, unknown>;
        };
        if (message.method !== undefined)
          peer.heard.push({ method: message.method, params: message.params ?? {} });
        else peer.waits.get(message.id ?? 0)?.(message);
      };
      return new Promise<void>((done, failed) => {
        socket.onerror = () => failed(new Error('no socket'));
        socket.onopen = () => {
          socket.send(JSON.stringify({ token }));
          done();
        };
      });
    }, token);
    const peer = new Peer(page);
    await peer.call('initialize', {
      protocolVersion: 1,
      clientInfo: { name: 'peer' },
      capabilities,
    });
    return peer;
  }

  async call<T = Record<string, unknown>>(method: string, params: object = {}): Promise<T> {
    const answer = await this.page.evaluate(
      ({ method, params }) => {
        const { peer } = window as unknown as PeerWindow;
        const id = ++peer.last;
        peer.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
        return new Promise<Answer>((done) => peer.waits.set(id, done));
      },
      { method, params },
    );
    if (answer.error) throw new Error(`${answer.error.data?.kind ?? ''}: ${answer.error.message}`);
    return answer.result as T;
  }

  /** Waits for a notification. */
  async hear(method: string): Promise<Record<string, unknown>> {
    const handle = await this.page.waitForFunction(
      (method) =>
        (window as unknown as PeerWindow).peer.heard.find((one) => one.method === method)?.params,
      method,
    );
    return (await handle.jsonValue()) ?? {};
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}
