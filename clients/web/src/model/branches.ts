/** Names and archive of branches (protocol.md §3.20). */

import type { Row } from '../wire.ts';
import type { LiveState } from './live-state.ts';
import { hint } from './keys.ts';
import { failureText, reasonText, type Refusal } from './moves.ts';
import { visible } from '../text/visible.ts';

interface Inverse {
  params: { name?: string };
}

interface Named {
  name?: string;
  inverse?: Inverse;
}

interface Archived extends Refusal {
  oldLeafId: string | null;
  newLeafId: string | null;
  inverse?: Inverse;
}

export class Branches {
  constructor(private readonly live: LiveState) {}

  /**
   * Opens a row that stands for several branches, since an action needs one of them. Returns whether it was such a
   * row.
   */
  private opens(row: Row): boolean {
    if ((row.folded?.branches ?? 1) < 2) return false;
    this.live.app.say('Several branches are here: choose one of them.');
    this.live.app.session?.tree.toggleFold();
    return true;
  }

  askName(row: Row): void {
    if (!this.opens(row)) this.live.show({ kind: 'name-branch', id: row.id });
  }

  /** Archives the branch of a row, or restores it if it is archived. */
  toggle(row: Row): void {
    if (row.archived === true && (row.folded?.branches ?? 1) < 2) void this.unarchive(row.id);
    else this.archive(row);
  }

  /** Archives the branch of a row. If the leaf is in the branch, it first asks whether the leaf may move out. */
  archive(row: Row): void {
    if (this.opens(row)) return;
    if (row.onActivePath) this.live.show({ kind: 'archive', id: row.id });
    else void this.putAway(row.id);
  }

  /** Shows archived branches, or hides them. */
  show(): void {
    const { app } = this.live;
    const tree = app.session?.tree;
    if (!tree) return;
    if (!tree.archived && (tree.view?.archivedBranches ?? 0) === 0)
      app.say(`No branch is archived. ${hint('archive')} archives one.`);
    else tree.toggleArchived();
  }

  async name(entryId: string, name: string): Promise<void> {
    const given = name.trim() === '' ? {} : { name: name.trim() };
    const named = await this.change<Named>('name_branch', { entryId, ...given });
    if (!named) return;
    const former = named.inverse?.params.name;
    const was = former === undefined ? '' : ` It was “${former}”.`;
    const again = ` ${hint('name-branch')} names it again.`;
    const said =
      named.name === undefined
        ? 'The branch has no name.'
        : named.inverse
          ? `The branch is “${named.name}”.`
          : 'The branch has this name already.';
    this.live.app.say(visible(`${said}${was}${named.inverse ? again : ''}`));
  }

  async putAway(entryId: string): Promise<void> {
    const { app } = this.live;
    const archived = await this.change<Archived>('archive_branch', { entryId });
    if (!archived) return;
    if (archived.cancelled) {
      app.say(reasonText(archived) ?? 'Nothing was archived.', 'warning');
      return;
    }
    if (!archived.inverse) {
      app.say('The branch is archived already.');
      return;
    }
    const shows = app.session?.tree.archived === true ? '' : `${hint('show-archived')} shows it, `;
    const out = archived.oldLeafId === archived.newLeafId ? '' : ' The leaf has moved out of it.';
    app.say(`Archived.${out} ${shows}${hint('archive')} brings it back.`);
  }

  async unarchive(entryId: string): Promise<void> {
    const back = await this.change<{ entryIds: string[] }>('unarchive_branch', { entryId });
    if (!back) return;
    this.live.app.say(
      back.entryIds.length === 0
        ? 'The entry is in no archived branch.'
        : `The branch is back. ${hint('archive')} archives it again.`,
    );
  }

  /** Asks a side question: a background branch below the leaf (protocol.md §3.23). */
  async ask(question: string): Promise<void> {
    if (question.trim() === '') return;
    const parentId = this.live.source?.leafId() ?? null;
    const message = { role: 'user', content: question.trim() };
    const params = { message, parentId, keepLeaf: true, group: 'btw' };
    if (!(await this.change('append_message', params))) return;
    this.live.app.say(`Asked beside the conversation. ${hint('keep-aside')} brings it in.`);
  }

  /** Copies the background branch of a row into the conversation. */
  async keep(row: Row): Promise<void> {
    if (this.opens(row)) return;
    const kept = await this.change<{ durability: string }>('keep_branch', { entryId: row.id });
    if (!kept) return;
    this.live.app.say(
      kept.durability === 'none'
        ? 'It is in the conversation already.'
        : 'Kept: its messages are at the leaf.',
    );
  }

  /** Returns undefined after a failure. The failure is shown. */
  private async change<T>(method: string, params: object): Promise<T | undefined> {
    const { app, sessionId } = this.live;
    this.live.show(undefined);
    try {
      const result = await this.live.call<T>(method, { sessionId, ...params });
      await app.session?.tree.reload();
      return result;
    } catch (error) {
      const text = failureText(error);
      if (text === undefined) app.failed(error);
      else app.say(text, 'error');
      return undefined;
    }
  }
}
