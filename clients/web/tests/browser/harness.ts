/** Opens pages in Debian's Chromium: files that `TREELINED_BIN` has exported, and live pages. */

import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from 'playwright-core';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { SessionWriter } from '../sample.ts';

const { TREELINED_BIN } = process.env;
if (TREELINED_BIN === undefined) throw new Error('TREELINED_BIN names the daemon to test');
const BINARY: string = TREELINED_BIN;

/** During development, the newest build of the page replaces the one in the daemon. */
const REPLACE = process.env.TREELINED_WEB_REPLACE === '1';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
];

/** A folder, the browser, and the daemons for one file of tests. All end with the tests. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'treelined-web-'));
  private readonly children: ChildProcess[] = [];

  private constructor(readonly browser: Browser) {}

  static async open(): Promise<Stage> {
    const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
    // A replaced document has no address, so Chromium would not let it connect to this machine.
    const args = REPLACE ? [...FLAGS, '--disable-features=LocalNetworkAccessChecks'] : FLAGS;
    return new Stage(await chromium.launch({ executablePath, headless: true, args }));
  }

  async close(): Promise<void> {
    await this.browser.close();
    // A daemon may write its caches while it ends, so the folder is removed afterwards.
    await Promise.all(this.children.map(ended));
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Exports a session to a page, and returns its path. */
  export(session: SessionWriter, ...options: string[]): string {
    const source = join(this.folder, `${session.sessionId}.jsonl`);
    const page = join(this.folder, `${session.sessionId}.html`);
    writeFileSync(source, session.jsonl());
    execFileSync(BINARY, ['export', source, '--html', '--overwrite', '-o', page, ...options], {
      env: this.environment(),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    if (REPLACE) writeFileSync(page, replaced(readFileSync(page, 'utf8')));
    return page;
  }

  private environment(): NodeJS.ProcessEnv {
    const home = join(this.folder, 'home');
    mkdirSync(home, { recursive: true });
    return {
      ...process.env,
      HOME: home,
      XDG_CONFIG_HOME: home,
      XDG_RUNTIME_DIR: home,
      TREELINED_SESSION_DIR: join(this.folder, 'unused'),
    };
  }

  async context(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.browser.newContext({
      viewport: { width: 1200, height: 800 },
      ...options,
    });
    context.setDefaultTimeout(60_000);
    return context;
  }

  async openFile(
    path: string,
    options: BrowserContextOptions & { fragment?: string } = {},
  ): Promise<Watched> {
    const { fragment = '', ...rest } = options;
    const context = await this.context(rest);
    const watched = await Watched.in(context);
    await watched.page.goto(pathToFileURL(path).href + fragment);
    await watched.page.waitForSelector('#tree [role=treeitem]', { state: 'attached' });
    return watched;
  }

  /** Opens a page without scripts. */
  async openStatic(path: string): Promise<Watched> {
    const watched = await Watched.in(await this.context({ javaScriptEnabled: false }));
    await watched.page.goto(pathToFileURL(path).href);
    return watched;
  }

  /** Starts a daemon with these sessions, which serves the page. */
  async serve(...sessions: SessionWriter[]): Promise<Served> {
    return this.serveWith(['--summarizer', 'outline'], ...sessions);
  }

  /** Starts a daemon with a shell command as summarizer. The command gets the request on stdin. */
  async serveWithSummarizer(command: string, ...sessions: SessionWriter[]): Promise<Served> {
    const config = join(this.folder, 'config.toml');
    const argv = JSON.stringify(['/bin/sh', '-c', command]);
    writeFileSync(config, `[summarizer]\nuse = "command"\n[summarizer.command]\nargv = ${argv}\n`, {
      mode: 0o600,
    });
    return this.serveWith(['--config', config], ...sessions);
  }

  /** Starts a daemon with these options and sessions, which serves the page. */
  async serveWith(options: string[], ...sessions: SessionWriter[]): Promise<Served> {
    const folder = mkdtempSync(join(this.folder, 'sessions-'));
    for (const session of sessions) {
      writeFileSync(
        join(folder, `2026-11-22T08-00-00-000Z_${session.sessionId}.jsonl`),
        session.jsonl(),
      );
    }
    const served = new Served(this, folder, BINARY, this.environment(), options);
    await served.start();
    return served;
  }

  keep(child: ChildProcess): void {
    this.children.push(child);
  }
}

/** Ends a program, and waits until it has ended. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  await exit;
}

function hash(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

function dist(): { script: string; style: string } {
  return {
    script: readFileSync('dist/page.js', 'utf8'),
    style: readFileSync('dist/page.css', 'utf8'),
  };
}

/** The document with the newest script and style, and with their hashes. */
function replaced(html: string): string {
  const { script, style } = dist();
  return policy(html)
    .replace(/<style>[^]*?<\/style>/, () => `<style>${style}</style>`)
    .replace(/<script>[^]*?<\/script>/, () => `<script>${script}</script>`);
}

function policy(text: string): string {
  const { script, style } = dist();
  return text
    .replace(/script-src 'sha256-[^']*'/, () => `script-src '${hash(script)}'`)
    .replace(/style-src 'sha256-[^']*'/, () => `style-src '${hash(style)}'`);
}

/** A daemon that serves the page. */
export class Served {
  child: ChildProcess | undefined;
  /** The address of the page, with the token. */
  url = '';

  constructor(
    private readonly stage: Stage,
    readonly folder: string,
    private readonly binary: string,
    private readonly environment: NodeJS.ProcessEnv,
    private readonly options: string[],
  ) {}

  /** The socket of the daemon. */
  get socket(): string {
    return join(this.folder, '.socket');
  }

  /** Runs a command of the program at this daemon, and returns its output. */
  run(...args: string[]): string {
    return execFileSync(this.binary, ['--session-dir', this.folder, ...args], {
      env: this.environment,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  async start(): Promise<void> {
    const args = [
      'web',
      '--no-open',
      '--session-dir',
      this.folder,
      '--socket',
      this.socket,
      ...this.options,
    ];
    const child = spawn(this.binary, args, {
      env: this.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    this.stage.keep(child);
    this.url = await new Promise<string>((done, failed) => {
      let errors = '';
      child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
      child.stdout.on('data', (data: Buffer) => {
        const url = /http:\S+/.exec(data.toString())?.[0];
        if (url !== undefined) done(url);
      });
      child.on('exit', (code) => failed(new Error(`the daemon ended with ${code}: ${errors}`)));
    });
  }

  async stop(): Promise<void> {
    if (this.child) await ended(this.child);
  }

  /** Opens the page. `fragment` is appended to the fragment with the token. */
  async open(fragment: string, options: BrowserContextOptions = {}): Promise<Watched> {
    const context = await this.stage.context(options);
    if (REPLACE) {
      await context.route(/^http:\/\/127\.0\.0\.1:\d+\/$/, async (route) => {
        const answer = await route.fetch();
        const headers = answer.headers();
        const csp = 'content-security-policy';
        headers[csp] = policy(headers[csp] ?? '');
        await route.fulfill({ status: 200, headers, body: replaced(await answer.text()) });
      });
    }
    const watched = await Watched.in(context);
    await watched.page.goto(`${this.url.split('&')[0] ?? ''}${fragment}`);
    return watched;
  }
}

/** A page, and records of all that it must not do. */
export class Watched {
  readonly errors: string[] = [];
  readonly requests: string[] = [];
  readonly dialogs: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  static async in(context: BrowserContext): Promise<Watched> {
    const page = await context.newPage();
    const watched = new Watched(context, page);
    page.on('pageerror', (error) => watched.errors.push(error.stack ?? error.message));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning')
        watched.errors.push(message.text());
    });
    page.on('dialog', (dialog) => {
      watched.dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    context.on('request', (request) => watched.requests.push(request.url()));
    context.on('page', (opened) => watched.dialogs.push(`a new page: ${opened.url()}`));
    return watched;
  }

  /** The requests other than those for the document and for pictures in it. */
  foreign(): string[] {
    return this.requests.filter(
      (url) =>
        !url.startsWith('data:') &&
        !url.startsWith('file:') &&
        !/^(http|ws):\/\/127\.0\.0\.1:/.test(url),
    );
  }

  async close(): Promise<void> {
    await this.context.close();
  }
}
