/** Another client of the daemon, over its socket: the page may not do everything that a client can. */

import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Served } from './harness.ts';

interface Message {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { message: string; data?: { kind?: string } };
}

export class Peer {
  private last = 0;
  private readonly waits = new Map<number, (answer: Message) => void>();
  private readonly heard: Message[] = [];
  private hearing: (() => void)[] = [];

  private constructor(private readonly socket: Socket) {
    createInterface({ input: socket }).on('line', (line) => {
      const message = JSON.parse(line) as Message;
      if (message.method === undefined) {
        this.waits.get(message.id ?? 0)?.(message);
        return;
      }
      this.heard.push(message);
      for (const told of this.hearing.splice(0)) told();
    });
  }

  static async connect(served: Served, capabilities: object = {}): Promise<Peer> {
    const socket = connect(served.socket);
    await new Promise<void>((done, failed) => socket.once('connect', done).once('error', failed));
    const peer = new Peer(socket);
    await peer.call('initialize', {
      protocolVersion: 1,
      clientInfo: { name: 'peer' },
      capabilities,
    });
    return peer;
  }

  async call<T = Record<string, unknown>>(method: string, params: object = {}): Promise<T> {
    const id = ++this.last;
    const answer = await new Promise<Message>((done) => {
      this.waits.set(id, done);
      this.socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
    if (answer.error) throw new Error(`${answer.error.data?.kind ?? ''}: ${answer.error.message}`);
    return answer.result as T;
  }

  /** Waits for a notification. */
  async hear(method: string): Promise<Record<string, unknown>> {
    for (;;) {
      const found = this.heard.find((one) => one.method === method);
      if (found) return found.params ?? {};
      await new Promise<void>((told) => this.hearing.push(told));
    }
  }

  async close(): Promise<void> {
    await new Promise<void>((done) => this.socket.once('close', () => done()).end());
  }
}
