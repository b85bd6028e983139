// The command that continues the conversation in another agent.

import { TreelinedError } from 'treelined';
import * as vscode from 'vscode';
import {
  type Agent,
  AGENTS,
  commandLine,
  handedOver,
  type Shorter,
  SHORTER,
} from '../core/continuation.js';
import type { Session } from '../core/session.js';
import type { Item } from '../core/tree.js';
import { startOptions } from '../settings.js';
import { chosen } from './entries.js';
import type { Parts } from './parts.js';

interface Handed {
  shorter: Shorter | undefined;
  says: string;
}

type Choice = 'go' | 'learned' | 'copy';

export function continuationCommands(parts: Parts) {
  return {
    'treelined.continue': async (item?: Item) => {
      const { row } = chosen(parts, item);
      const session = parts.app.shown();
      const picks = AGENTS.map(([tool, label]) => ({ label, tool }));
      const agent = await vscode.window.showQuickPick(picks, { title: 'Go on in' });
      if (agent === undefined) return;
      const { path } = session;
      if (path === undefined && agent.tool !== 'text')
        throw new Error('This session has no file: choose a text.');
      const handed = await preview(session, row.id, agent.tool);
      const choice = handed && (await confirm(agent, handed.says, !row.isLeaf));
      if (choice === undefined) return;
      const params = {
        ...{ entryId: row.id, tool: agent.tool, dryRun: true },
        ...(choice === 'learned' && { learned: true }),
        ...handed?.shorter?.params,
      };
      if (agent.tool === 'text') {
        const { text = '' } = await session.call('continue_session', params);
        const made = await vscode.workspace.openTextDocument({
          content: text,
          language: 'markdown',
        });
        await vscode.window.showTextDocument(made);
        return;
      }
      const { capabilities } = (await session.client()).server;
      // If no summary can be written, the error is shown here instead of in the terminal. A summary may already
      // exist.
      if (choice === 'learned' && capabilities.summarizer === null)
        await session.call('continue_session', params);
      const options = [
        ...(choice === 'learned' ? ['--learned'] : []),
        ...(handed?.shorter?.options ?? []),
      ];
      const target = { path: path ?? '', entryId: row.id, tool: agent.tool, options };
      const line = commandLine(startOptions(parts.app.context.extensionPath), target);
      if (choice === 'copy') await vscode.env.clipboard.writeText(line);
      else typeInTerminal(agent.label, session.cwd, line);
    },
  };
}

/** Types a command into a terminal without running it. */
function typeInTerminal(name: string, cwd: string, line: string): void {
  const terminal = vscode.window.createTerminal({ name, cwd });
  terminal.show();
  terminal.sendText(line, false);
  void vscode.window.showInformationMessage(
    'Enter in the terminal goes on there. “Import Sessions…” brings what is said into this tree.',
  );
}

/**
 * Asks the daemon what the agent would get, and asks the person for less if that is too much. Undefined: the person
 * cancels.
 */
async function preview(
  session: Session,
  entryId: string,
  tool: Agent,
  shorter?: Shorter,
): Promise<Handed | undefined> {
  try {
    const params = { entryId, tool, dryRun: true, ...shorter?.asks };
    return { shorter, says: handedOver(await session.call('continue_session', params)) };
  } catch (error) {
    if (!(error instanceof TreelinedError) || error.kind !== 'contextTooLarge') throw error;
    const pick = await vscode.window.showQuickPick(
      SHORTER.map((each) => ({ label: each.label, each })),
      { title: 'Hand over', placeHolder: error.message },
    );
    return pick && preview(session, entryId, tool, pick.each);
  }
}

/** Shows what is lost, and asks the person what to do. */
async function confirm(
  { label, tool }: { label: string; tool: Agent },
  says: string,
  isLeaving: boolean,
): Promise<Choice | undefined> {
  const picks: { label: string; choice: Choice }[] = [{ label: 'Go on', choice: 'go' }];
  if (isLeaving)
    picks.push({ label: 'Go on with a summary of the branch that is left', choice: 'learned' });
  if (tool !== 'text') picks.push({ label: 'Copy the command', choice: 'copy' });
  const options = { title: `Go on in ${label}`, placeHolder: says, ignoreFocusOut: true };
  return (await vscode.window.showQuickPick(picks, options))?.choice;
}
