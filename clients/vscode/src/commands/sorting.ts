// Commands that sort sessions by tags, pins, archive and families, and the command that chooses between candidates.

import * as vscode from 'vscode';
import { sessionFacts, sessionTitle } from '../core/sessions.js';
import { candidates, choose, family, rowOfSession, setTags, toggleMark } from '../core/sorting.js';
import type { SessionItem } from '../sessionsView.js';
import type { Parts } from './parts.js';

export function sortingCommands({ app, tree, sessions }: Parts) {
  const say = (text: string) => void vscode.window.showInformationMessage(text);
  /** The id of the menu's session, or of the shown session. */
  const idOf = (item?: SessionItem) =>
    item?.kind === 'session' ? item.row.sessionId : app.shown().id;
  const toggle = (mark: 'pinned' | 'archived') => async (item?: SessionItem) => {
    const row = await rowOfSession(app.connection, idOf(item));
    say(await toggleMark(app.connection, row, mark));
  };
  return {
    'treelined.tagSession': async (item?: SessionItem) => {
      const { sessionId, tags = [] } = await rowOfSession(app.connection, idOf(item));
      const text = await vscode.window.showInputBox({
        title: 'Tags of the session',
        prompt: 'Words without white space. Empty takes all tags away.',
        value: tags.join(' '),
        ignoreFocusOut: true,
      });
      if (text !== undefined) say(await setTags(await app.sessionOf(sessionId), tags, text));
    },
    'treelined.pinSession': toggle('pinned'),
    'treelined.archiveSession': toggle('archived'),
    'treelined.showArchivedSessions': async () => {
      await app.sessions.showArchived(!app.sessions.archived);
      sessions.refresh();
    },
    'treelined.family': async (item?: SessionItem) => {
      const born = item?.kind === 'session' ? [] : tree.selected?.row.sessions;
      const relatives = await family(app.connection, idOf(item), born);
      if (relatives.length < 2) {
        say('No session comes from this one, and it comes from none.');
        return;
      }
      const picks = relatives.map((relative) => ({
        label: `${relative.isBorn ? '↗ ' : ''}${relative.place}${sessionTitle(relative.row)}`,
        description: relative.isOwn ? 'this session' : sessionFacts(relative.row),
        relative,
      }));
      const pick = await vscode.window.showQuickPick(picks, { title: 'Family of the session' });
      if (pick === undefined) return;
      await app.open({ path: pick.relative.row.path });
      await vscode.commands.executeCommand('treelined.tree.focus');
      if (pick.relative.entryId !== undefined) await tree.reveal(pick.relative.entryId);
    },
    'treelined.candidates': async () => {
      const session = app.shown();
      const found = await candidates(session);
      if (found.length === 0) throw new Error('No question has several answers here.');
      const picks = found.map(({ branch, outcome }) => ({
        label: outcome,
        description: branch.isActive ? 'active' : '',
        branch,
      }));
      const pick = await vscode.window.showQuickPick(picks, { title: 'Choose an answer' });
      if (pick === undefined) return;
      const reason = await vscode.window.showInputBox({
        title: 'Why this one?',
        prompt: 'The others get a note with it. It may be empty.',
        ignoreFocusOut: true,
      });
      if (reason !== undefined) say(await choose(session, pick.branch.tipId, reason));
    },
  };
}
