// Commands about messages, other programs and the daemon.

import * as vscode from 'vscode';
import type { Parts } from './parts.js';

export function programCommands({ app, asking, composer, page }: Parts) {
  return {
    'treelined.compose': async () => composer.begin(app.shown().id),
    'treelined.send': async () => composer.send(),
    'treelined.answer': async () => asking.answer(),
    'treelined.runCommand': async () => {
      const { commands } = await app.connection.call('list_commands', {});
      if (commands.length === 0) {
        const text =
          'No program offers a command. Extensions of the daemon do, and clients of a shared daemon.';
        void vscode.window.showInformationMessage(text);
        return;
      }
      const picks = commands.map(({ name, description, argumentHint, by }) => ({
        label: name,
        description: [argumentHint, by].filter(Boolean).join(' · '),
        detail: description ?? '',
        argumentHint,
      }));
      const pick = await vscode.window.showQuickPick(picks, {
        title: 'Run a command',
        matchOnDetail: true,
      });
      if (pick === undefined) return;
      const args = await vscode.window.showInputBox({
        title: `/${pick.label}`,
        prompt: pick.argumentHint ?? 'The argument; it may be empty.',
        ignoreFocusOut: true,
      });
      if (args === undefined) return;
      const sessionId = app.session?.id;
      const result = await app.progress(`Running ${pick.label}`, (signal) =>
        app.connection.call(
          'run_command',
          { name: pick.label, args, timeoutMs: 600_000, ...(sessionId && { sessionId }) },
          { signal },
        ),
      );
      if (result?.output) void vscode.window.showInformationMessage(result.output);
      if (result?.prompt !== undefined && sessionId) await composer.begin(sessionId, result.prompt);
    },
    'treelined.page': async () => page.show(app.shown()),
    'treelined.showLog': async () => app.log.show(true),
    'treelined.restart': async () => {
      await app.connection.stop();
      await app.connection.client();
      await app.session?.client();
      app.changed.fire(undefined);
    },
  };
}
