/**
 * The session on the screen, the address that names it, and notices. Code that changes these calls `changed`, which
 * draws the page again.
 */

import { Session } from './session.ts';
import { formatRoute, parseRoute, type SessionRoute } from './route.ts';
import type { Source } from '../source/source.ts';

export interface Notice {
  text: string;
  level: 'info' | 'warning' | 'error';
}

export type Overlay = 'help' | 'stats' | 'redactions' | undefined;

export class PageState {
  session: Session | undefined;
  overlay: Overlay;
  notices: Notice[] = [];
  /** On a narrow screen, whether the tree covers the text. On a wide screen, whether the tree is hidden. */
  drawer = false;
  treeHidden = false;
  /** The session that the address names. */
  route: SessionRoute = {};
  /** The number of times that the page was drawn. */
  drawn = 0;
  private drawing = false;

  constructor(private readonly draw: () => void) {}

  readonly changed = (): void => {
    if (this.drawing) return;
    this.drawing = true;
    queueMicrotask(() => {
      this.drawing = false;
      this.session?.tree.follow();
      this.drawn++;
      this.draw();
    });
  };

  say(text: string, level: Notice['level'] = 'info'): void {
    const notice = { text, level };
    const others = this.notices.filter((one) => one.text !== text);
    this.notices = [...others, notice].slice(-3);
    const shown = level === 'error' ? 12_000 : 5000;
    setTimeout(() => {
      this.notices = this.notices.filter((one) => one !== notice);
      this.changed();
    }, shown);
    this.changed();
  }

  readonly failed = (error: unknown): void => {
    if (error instanceof DOMException && error.name === 'AbortError') return;
    this.say(error instanceof Error ? error.message : String(error), 'error');
  };

  open(source: Source): Session {
    const selected = (entry: string): void => {
      if (this.session?.fromBeginning !== true) this.setRoute(entry);
    };
    this.session = new Session(source, { changed: this.changed, failed: this.failed, selected });
    return this.session;
  }

  /** Shows the entry in the address, or the entry that the source proposes. */
  async start(): Promise<void> {
    const { session } = this;
    if (!session) return;
    const wanted = parseRoute(location.hash).entry;
    if (wanted !== undefined) {
      if (await session.tree.go(wanted)) return;
      // The filter hides the entry in the tree. The text shows it anyway.
      if (await session.source.path(wanted)) {
        session.tree.filter = 'all';
        if (await session.tree.go(wanted)) return;
      }
    }
    // If a file is opened without an entry in its address, the text is shown from its beginning.
    session.fromBeginning = session.source.kind === 'file';
    await session.tree.reload('center', session.source.selected);
  }

  /** Shows the entry of the address after the reader has changed the address. */
  async followRoute(): Promise<void> {
    const route = parseRoute(location.hash);
    const { session } = this;
    if (!session || route.entry === undefined || route.entry === session.tree.cursorId) return;
    await this.go(route.entry);
  }

  /** The fragment of the address for an entry of the open session. */
  routeTo(entry: string): string {
    return formatRoute({ ...this.route, entry });
  }

  private setRoute(entry: string): void {
    const route = this.routeTo(entry);
    if (route !== location.hash) history.replaceState(null, '', route);
  }

  /** Selects an entry. If the filter hides it, all entries are shown. */
  async go(id: string): Promise<void> {
    const { session } = this;
    if (!session) return;
    this.drawer = false;
    if (await session.tree.go(id)) return;
    session.tree.filter = 'all';
    if (!(await session.tree.go(id))) this.say('The session has no such entry.', 'warning');
  }
}
