/** The state of the page, and its actions. */

import { PageState, type Overlay } from './page-state.ts';
import { bindingOf, hint, typed, type Action } from './keys.ts';
import { FILTERS } from '../wire.ts';
import { blockText } from '../source/texts.ts';
import type { FileSource } from '../source/file.ts';
import type { Live } from './live.ts';

export class App extends PageState {
  live: Live | undefined;
  file: FileSource | undefined;

  close(): void {
    if (this.session) this.session.compared = undefined;
    this.overlay = undefined;
    this.changed();
  }

  show(overlay: Overlay): void {
    this.overlay = overlay;
    this.changed();
  }

  async copy(text: string, about = 'Copied.'): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      if (!copyBySelection(text)) {
        this.say('The browser does not let the page copy.', 'warning');
        return;
      }
    }
    this.say(about);
  }

  async copyEntry(id: string): Promise<void> {
    const body = await this.session?.bodies.fetch(id);
    if (body) await this.copy(body.blocks.map(blockText).join('\n\n').trim());
  }

  search(text: string): void {
    const { session, file } = this;
    if (!session) return;
    session.tree.search(text);
    const query = session.tree.query;
    if (!file || !query || query.error || query.text.length < 2) {
      session.tree.searching = undefined;
      return;
    }
    session.tree.searching = 0;
    const isCurrent = (): boolean => session.tree.query === query;
    const progress = (share: number, news: boolean): boolean => {
      if (!isCurrent()) return false;
      session.tree.searching = share < 1 ? share : undefined;
      if (news) void session.tree.reload('keep');
      else this.changed();
      return true;
    };
    const begin = (): void => {
      if (isCurrent()) file.searchBodies(query, progress).catch(this.failed);
    };
    setTimeout(begin, 250);
  }

  /** Runs the action of a key. Returns whether the key had one. */
  key(event: KeyboardEvent): boolean {
    const binding = bindingOf(event, this.live !== undefined);
    if (binding) return this.act(binding.action);
    const letter = typed(event);
    if (letter === undefined || !this.session) return false;
    this.say(
      `${letter} has no action. ${hint('search')} searches, ${hint('help')} lists the keys.`,
    );
    return true;
  }

  focusSearch(): void {
    this.drawer = true;
    const field = document.querySelector<HTMLInputElement>('#search');
    field?.focus();
    field?.select();
    this.changed();
  }

  act(action: Action): boolean {
    if (this.live?.act(action)) return true;
    const tree = this.session?.tree;
    if (!tree) return false;
    const page = Math.max(
      1,
      Math.floor((document.querySelector('#tree')?.clientHeight ?? 300) / 26) - 1,
    );
    const moves: Partial<Record<Action, number>> = {
      up: tree.cursor - 1,
      down: tree.cursor + 1,
      'page-up': tree.cursor - page,
      'page-down': tree.cursor + page,
      first: 0,
      last: Infinity,
    };
    // With a query only entries with a hit have rows.
    if (action === 'next-hit' || action === 'previous-hit') {
      if (tree.query) tree.move(tree.cursor + (action === 'next-hit' ? 1 : -1));
      else this.say(`Nothing is searched. ${hint('search')} searches.`);
      return true;
    }
    const to = moves[action];
    if (to !== undefined) {
      tree.move(to);
      return true;
    }
    return this.actOnTree(action) || this.actOnPage(action);
  }

  private actOnTree(action: Action): boolean {
    const { session } = this;
    if (!session) return false;
    const { tree } = session;
    const filter = FILTERS.find((name) => action === `filter-${name}`);
    if (filter) tree.setFilter(filter);
    else if (action === 'next-filter') tree.nextFilter();
    else if (action === 'fold-or-up') tree.foldOrUp();
    else if (action === 'unfold-or-down') tree.unfoldOrDown();
    else if (action === 'toggle-fold') tree.toggleFold();
    else if (action === 'accept' && tree.row()?.folded) tree.toggleFold();
    else if (action === 'open-all') tree.toggleAll();
    else if (action === 'next-prompt')
      tree.movePrompt(1, () => this.say('This is the last user message.'));
    else if (action === 'previous-prompt')
      tree.movePrompt(-1, () => this.say('This is the first user message.'));
    else if (action === 'toggle-tools') session.toggleAll('tools');
    else if (action === 'toggle-thinking') session.toggleAll('thinking');
    else if (action === 'mark') tree.mark();
    else if (action === 'compare') session.compare().catch(this.failed);
    else if (action === 'copy') {
      const id = tree.row()?.id;
      if (id !== undefined) void this.copyEntry(id);
    } else if (action === 'to-active') {
      const leaf = session.source.leafId();
      // This also scrolls back if the cursor is already there.
      if (leaf !== undefined) void tree.go(leaf).then(() => session.show(leaf));
    } else return false;
    return true;
  }

  private actOnPage(action: Action): boolean {
    switch (action) {
      case 'help':
        this.show(this.overlay === 'help' ? undefined : 'help');
        return true;
      case 'stats':
        this.show('stats');
        return true;
      case 'search':
        this.focusSearch();
        return true;
      case 'accept':
      case 'focus-path':
        this.drawer = false;
        this.changed();
        document.querySelector<HTMLElement>('#path')?.focus();
        return true;
      case 'toggle-path':
        this.treeHidden = !this.treeHidden;
        this.changed();
        return true;
      case 'back':
        return this.back();
      default:
        return false;
    }
  }

  back(): boolean {
    const { session } = this;
    if (this.overlay || session?.compared) this.close();
    else if (this.drawer) {
      this.drawer = false;
      this.changed();
    } else if (session && session.tree.typed !== '') this.search('');
    else return false;
    return true;
  }
}

/** Copies a text if the browser gives the page no clipboard. */
function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  // This function is old, but the only one that works without a secure context.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const done = document.execCommand('copy');
  field.remove();
  return done;
}
