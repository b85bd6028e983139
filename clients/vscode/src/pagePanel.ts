// Shows the page of `clients/web` in a webview.

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { App } from './app.js';
import { Bridge, type FromPage } from './core/bridge.js';
import { missingPage, type PageAssets, pageHtml } from './core/page.js';
import type { Session } from './core/session.js';

export class PagePanel implements vscode.Disposable {
  readonly #app: App;
  readonly #panels = new Set<vscode.WebviewPanel>();

  constructor(app: App) {
    this.#app = app;
  }

  dispose(): void {
    for (const panel of this.#panels) panel.dispose();
  }

  async show(session: Session): Promise<void> {
    const panel = vscode.window.createWebviewPanel(
      'treelined.page',
      session.title,
      vscode.ViewColumn.Active,
      { enableScripts: true, localResourceRoots: [], retainContextWhenHidden: true },
    );
    this.#panels.add(panel);
    const bridge = new Bridge(this.#app.connection, (message) => {
      void panel.webview.postMessage(message);
    });
    panel.webview.onDidReceiveMessage((message: FromPage) => bridge.receive(message));
    panel.onDidDispose(() => {
      this.#panels.delete(panel);
      bridge.dispose();
    });
    const assets = await this.#assets();
    const { Dark, HighContrast } = vscode.ColorThemeKind;
    const { kind } = vscode.window.activeColorTheme;
    const nonce = randomBytes(16).toString('base64');
    const isDark = kind === Dark || kind === HighContrast;
    const place = { nonce, isDark, sessionId: session.id };
    panel.webview.html = assets ? pageHtml(assets, place) : missingPage();
  }

  /** The script and style of the page; undefined if this build has none. */
  async #assets(): Promise<PageAssets | undefined> {
    const folder = join(this.#app.context.extensionPath, 'dist', 'page');
    try {
      const read = (name: string) => readFile(join(folder, name), 'utf8');
      const [socket, script, style] = await Promise.all([
        read('socket.js'),
        read('page.js'),
        read('page.css'),
      ]);
      return { socket, script, style };
    } catch {
      return undefined;
    }
  }
}
