// The view of the tree.

import * as vscode from 'vscode';
import type { App } from './app.js';
import { throttle } from './core/emitter.js';
import { entryText } from './core/entry.js';
import { lookOf, newerText } from './core/look.js';
import { shorten } from './core/text.js';
import type { EntryItem, Item } from './core/tree.js';

/** The shortest time between two readings of the tree, in milliseconds. */
const CHANGE_MS = 100;

/** The most characters of an entry in its tooltip. */
const TOOLTIP = 1500;

export class TreeView implements vscode.TreeDataProvider<Item>, vscode.Disposable {
  readonly #app: App;
  readonly #emitter = new vscode.EventEmitter<Item | undefined>();
  readonly onDidChangeTreeData = this.#emitter.event;
  readonly #view: vscode.TreeView<Item>;
  readonly #stops: (() => void)[];
  #selections = 0;
  /** The leaf at the last reading, which is followed while it is selected. */
  #leafId: string | undefined;

  constructor(app: App) {
    this.#app = app;
    this.#view = vscode.window.createTreeView('treelined.tree', {
      treeDataProvider: this,
      showCollapseAll: true,
    });
    this.#view.onDidChangeSelection(() => (this.#selections += 1));
    const change = throttle(CHANGE_MS, () => this.#refresh());
    this.#stops = [app.changed.on(change), change.stop];
  }

  dispose(): void {
    for (const stop of this.#stops) stop();
    this.#view.dispose();
    this.#emitter.dispose();
  }

  /** The entry that is selected. */
  get selected(): EntryItem | undefined {
    const [item] = this.#view.selection;
    return item && item.kind !== 'more' && item.kind !== 'branches' ? item : undefined;
  }

  async getChildren(parent?: Item): Promise<Item[]> {
    const { tree } = this.#app;
    if (tree === undefined) return [];
    tree.onMore = (item) => this.#emitter.fire(item);
    const items = await this.#app.run(() => tree.children(parent));
    if (parent === undefined && items) this.#describe();
    return items ?? [];
  }

  getParent(item: Item): Item | undefined {
    return item.parent;
  }

  getTreeItem(item: Item): vscode.TreeItem {
    const { Collapsed, Expanded, None } = vscode.TreeItemCollapsibleState;
    if (item.kind === 'more') {
      const more = new vscode.TreeItem(item.text, None);
      more.id = item.id;
      more.iconPath = new vscode.ThemeIcon('ellipsis');
      more.contextValue = 'more';
      more.command = { command: 'treelined.more', title: 'Show More', arguments: [item] };
      return more;
    }
    const look = lookOf(item.row);
    const label = { label: look.label, highlights: look.highlights };
    // The leaf is expanded, so that entries which other programs append are visible at once.
    const folded = item.row.isLeaf ? Expanded : Collapsed;
    const shown = new vscode.TreeItem(label, item.hasChildren ? folded : None);
    // VS Code remembers by id whether an item is expanded. A leaf that gets children needs another id, so that it is
    // expanded.
    shown.id = item.row.isLeaf && item.hasChildren ? `leaf ${item.id}` : item.id;
    shown.description = look.description;
    shown.iconPath = new vscode.ThemeIcon(
      look.icon,
      look.color === undefined ? undefined : new vscode.ThemeColor(look.color),
    );
    shown.contextValue = [
      'entry',
      item.kind,
      item.row.isLeaf && 'leaf',
      item.row.label && 'labeled',
      item.row.archived && 'archived',
    ]
      .filter(Boolean)
      .join(' ');
    shown.accessibilityInformation = { label: look.spoken };
    shown.command = { command: 'treelined.show', title: 'Show', arguments: [item] };
    return shown;
  }

  /**
   * Adds the text of the entry when the pointer is over it. The text is not rendered as Markdown, since entries are
   * untrusted.
   */
  async resolveTreeItem(shown: vscode.TreeItem, item: Item): Promise<vscode.TreeItem> {
    if (item.kind === 'more' || this.#app.session === undefined) return shown;
    const entryId = item.row.id;
    const answer = await this.#app.session.call('get_entry', { entryId }).catch(() => undefined);
    const text = answer ? entryText(answer.entry) : item.row.preview;
    const cut = text.length > TOOLTIP ? `${text.slice(0, TOOLTIP)}…` : text;
    shown.tooltip = new vscode.MarkdownString().appendText(`${item.row.timestamp}\n\n${cut}`);
    return shown;
  }

  /** A counter of selections, by which a later selection is noticed. */
  get selections(): number {
    return this.#selections;
  }

  /** Selects the entry to which a move has led, unless the person has since selected another one. */
  async follow(entryId: string | null, since: number): Promise<void> {
    if (entryId !== null && this.#selections === since) await this.reveal(entryId, false);
  }

  /** Shows and selects an entry, wherever it is in the tree. */
  async reveal(entryId: string, focus = true): Promise<void> {
    const { tree } = this.#app;
    if (tree === undefined) return;
    if (tree.view.query !== '') tree.setView({ query: '' });
    const item = await this.#app.run(() => tree.locate(entryId));
    this.#emitter.fire(undefined);
    if (item) await this.#select(item, focus);
  }

  #describe(): void {
    const { tree } = this.#app;
    if (tree === undefined) return;
    const { query, filter } = tree.view;
    const { total, hidden, leafId } = tree.state;
    this.#view.title = shorten(tree.session.title, 40);
    this.#view.description = [
      filter !== 'default' && filter,
      query !== '' && `“${shorten(query, 20)}”`,
      `${total} rows${hidden > 0 ? `, ${hidden} hidden` : ''}`,
    ]
      .filter(Boolean)
      .join(' · ');
    this.#view.message = this.#message(total, leafId) ?? '';
    void vscode.commands.executeCommand('setContext', 'treelined.hasQuery', query !== '');
    this.#follow(leafId);
  }

  #message(total: number, leafId: string | null): string | undefined {
    const session = this.#app.session;
    if (session?.newerTurns !== undefined)
      return `${newerText(session.newerTurns)} on another branch: “Join the Leaf of Others” goes there.`;
    if (session?.othersLeafId !== undefined)
      return 'Another program goes on elsewhere: “Join the Leaf of Others” follows it.';
    if (this.#app.tree?.view.query && total === 0) return 'No entry matches.';
    if (total === 0) return 'This session is empty. Write a message to begin.';
    if (leafId === null) return 'The conversation is before its first message.';
    return undefined;
  }

  /** If the leaf was selected, the new one is. The view never takes the focus by itself. */
  #follow(leafId: string | null): void {
    const row = this.#app.tree?.leafRow;
    const before = this.#leafId;
    this.#leafId = row?.id;
    if (leafId === null || row === undefined || before === undefined || before === row.id) return;
    if (!this.#view.visible || this.selected?.row.id !== before) return;
    const item = this.#app.tree?.item(row.id);
    if (item) void this.#select(item, false);
  }

  /** Selects an item; once more if the tree changed at that moment, so that VS Code did not find it. */
  async #select(item: EntryItem, focus: boolean): Promise<void> {
    const options = { select: true, focus, expand: false };
    try {
      await this.#view.reveal(item, options);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 2 * CHANGE_MS));
      const again = this.#app.tree?.item(item.row.id);
      if (again) await Promise.resolve(this.#view.reveal(again, options)).catch(() => {});
    }
  }

  #refresh(): void {
    if (this.#app.tree === undefined) {
      this.#view.title = 'Tree';
      this.#view.description = '';
      this.#view.message = '';
    }
    this.#emitter.fire(undefined);
  }
}
