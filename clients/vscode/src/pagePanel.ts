// The page of `clients/web` in a webview.

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { App } from './app.js';
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
      vscode.ViewColumn.Beside,
      { enableScripts: true, localResourceRoots: [], retainContextWhenHidden: true },
    );
    this.#panels.add(panel);
    panel.onDidDispose(() => this.#panels.delete(panel));
    const assets = await this.#assets();
    const nonce = randomBytes(16).toString('base64');
    panel.webview.html = assets ? pageHtml(assets, nonce) : missingPage();
  }

  /** The script and style of the page, if this build has them. */
  async #assets(): Promise<PageAssets | undefined> {
    const folder = join(this.#app.context.extensionPath, 'dist', 'page');
    try {
      const [script, style] = await Promise.all(
        ['page.js', 'page.css'].map((name) => readFile(join(folder, name), 'utf8')),
      );
      return { script: script ?? '', style: style ?? '' };
    } catch {
      return undefined;
    }
  }
}
