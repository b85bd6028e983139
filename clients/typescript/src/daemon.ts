// The process of the daemon: its start, its pipes and its end. This module does not know JSON-RPC.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { TreelinedError } from './errors.js';
import { LineSplitter } from './lines.js';

/** The most characters that an error quotes from the end of the daemon's stderr output. */
const LAST_WORDS = 4096;

/** How long to wait for the rest of the output after the process has ended, in milliseconds. */
const DRAIN_MS = 1000;

/**
 * How long the daemon may take to end after SIGTERM, in milliseconds. The daemon itself waits 5 s for running
 * summaries.
 */
const TERMINATE_MS = 6000;

export interface DaemonOptions {
  command: string;
  /** The places where the program was searched for. */
  tried: readonly string[];
  args: string[];
  cwd?: string | undefined;
  env?: NodeJS.ProcessEnv | undefined;
  /** Called with each piece of stderr. */
  onLog?: ((text: string) => void) | undefined;
  onLine: (line: string) => void;
  /** Called once, after the last line. */
  onEnd: (why: TreelinedError) => void;
}

/** A running daemon. */
export class Daemon {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<void>;
  #stderr = '';

  constructor(options: DaemonOptions) {
    const { command, args, cwd, env } = options;
    this.#child = spawn(command, args, {
      cwd,
      env: env ?? process.env,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const splitter = new LineSplitter();
    this.#child.stdout.on('data', (chunk: Uint8Array) => {
      for (const line of splitter.push(chunk)) options.onLine(line);
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-LAST_WORDS);
      options.onLog?.(text);
    });
    // A failed write means that the daemon has ended, which `exit` reports.
    this.#child.stdin.on('error', () => {});
    this.#ended = new Promise((resolve) => {
      let over = false;
      const end = (why: string) => {
        if (over) return;
        over = true;
        options.onEnd(this.#disconnected(why));
        resolve();
      };
      this.#child.on('error', (error) => {
        if (this.pid === undefined) end(whyNotStarted(options, error));
      });
      this.#child.on('close', () => end('the daemon has ended'));
      // A child of the daemon may keep the output open, so this does not wait for its end.
      this.#child.on('exit', () => setTimeout(end, DRAIN_MS, 'the daemon has ended').unref());
    });
  }

  /** Undefined if the program could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Keeps this process alive while the daemon runs. */
  ref(): void {
    for (const handle of this.#handles()) handle.ref?.();
  }

  /** Lets this process end while the daemon runs. The daemon then ends too. */
  unref(): void {
    for (const handle of this.#handles()) handle.unref?.();
  }

  /** The pipes of the daemon are sockets, although their types do not say so. */
  #handles(): Partial<Socket>[] {
    const { stdin, stdout, stderr } = this.#child;
    return [this.#child, stdin, stdout, stderr] as unknown[] as Partial<Socket>[];
  }

  write(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Closes stdin and waits for the exit. After `timeoutMs` it sends SIGTERM, and later SIGKILL. */
  async end(timeoutMs: number): Promise<void> {
    this.ref();
    this.#child.stdin.end();
    if (await this.#endsWithin(timeoutMs)) return;
    this.#child.kill('SIGTERM');
    if (await this.#endsWithin(TERMINATE_MS)) return;
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async #endsWithin(ms: number): Promise<boolean> {
    const timer = new AbortController();
    const late = once(timer.signal, 'abort').then(() => false);
    const timeout = setTimeout(() => timer.abort(), ms);
    const ended = await Promise.race([this.#ended.then(() => true), late]);
    clearTimeout(timeout);
    return ended;
  }

  #disconnected(why: string): TreelinedError {
    const { exitCode, signalCode: signal } = this.#child;
    const stderr = this.#stderr;
    const how = signal
      ? ` by ${signal}`
      : exitCode && exitCode > 0
        ? ` with exit code ${exitCode}`
        : '';
    const words = stderr.trim() ? `: ${stderr.trim()}` : '';
    return new TreelinedError(why + how + words, 'disconnected', { exitCode, signal, stderr });
  }
}

/** Says where a missing program was searched for, and how to install it. */
function whyNotStarted({ command, tried, cwd }: DaemonOptions, error: Error): string {
  const why = `cannot start ${command}: ${error.message}`;
  if (!('code' in error) || error.code !== 'ENOENT') return why;
  if (cwd !== undefined && !existsSync(cwd))
    return `${why}: there is no folder ${cwd} to start it in`;
  return (
    `${why}: there is no such program; tried: ${tried.join(', ')}. ` +
    "Install it with `cargo install --path .` in treelined's repository, " +
    "or give its path in TREELINED_BIN, or as connect({ command: '/path/to/treelined' })"
  );
}
