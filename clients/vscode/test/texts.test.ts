import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type TreeNode, TreelinedError } from 'treelined';
import { findDaemon } from '../src/core/binary.js';
import { ADVICE, ExtensionError, problem } from '../src/core/errors.js';
import { entryText, speaker } from '../src/core/entry.js';
import { kindOf, lookOf, positionText } from '../src/core/look.js';
import { missingPage, pageHtml } from '../src/core/page.js';
import { reasonText } from '../src/core/navigation.js';
import { sessionFacts } from '../src/core/sessions.js';
import { ago, count, shorten, unitRanges } from '../src/core/text.js';
import { folder, packageDir } from './fixture.js';

test('every kind of error of the protocol says what to do', async () => {
  const methods = JSON.parse(
    await readFile(new URL('../../schema/methods.json', packageDir), 'utf8'),
  ) as { errors: { kind: string }[] };
  const kinds = methods.errors.map(({ kind }) => kind);
  assert.ok(kinds.length > 40);
  for (const kind of kinds) assert.ok(kind in ADVICE, `no advice for ${kind}`);
  const readme = await readFile(new URL('README.md', packageDir), 'utf8');
  for (const kind of Object.keys(ADVICE)) {
    assert.ok(readme.includes(`\`${kind}\``), `README.md does not have the kind ${kind}`);
  }
});

test('an error is shown with what happened and what to do', () => {
  const busy = problem(
    new TreelinedError('undo_navigation: a turn is running', 'sessionBusy', {}, true),
  );
  assert.match(busy?.text ?? '', /^A turn is running\. Wait until/);
  assert.equal(busy?.remedy?.command, 'treelined.abort');
  assert.match(
    problem(new ExtensionError('untrusted', 'not trusted'))?.text ?? '',
    /Trust this folder/,
  );
  assert.equal(problem(new TreelinedError('cancelled', 'cancelled')), undefined);
  const newer = problem(new TreelinedError('x: odd', 'newKind' as never, {}, true));
  assert.equal(newer?.text, 'Odd. Try again.');
});

test('commands that errors offer exist', async () => {
  const { contributes } = JSON.parse(
    await readFile(new URL('package.json', packageDir), 'utf8'),
  ) as { contributes: { commands: { command: string }[]; configuration: { properties: object } } };
  const commands = contributes.commands.map(({ command }) => command);
  for (const { remedy } of Object.values(ADVICE)) {
    if (remedy?.command.startsWith('treelined.'))
      assert.ok(commands.includes(remedy.command), remedy.command);
    for (const setting of remedy?.args ?? [])
      assert.ok(setting in contributes.configuration.properties);
  }
});

test('the daemon is that of the setting, the environment, the extension, the path', async (t) => {
  const dir = await folder(t);
  const program = async (...parts: string[]) => {
    const path = join(dir, ...parts);
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, '');
    await chmod(path, 0o755);
    return path;
  };
  const extensionDir = join(dir, 'extension');
  const places = { setting: '', extensionDir, env: { PATH: join(dir, 'path') } };
  assert.throws(() => findDaemon(places), /tried: .*in the extension.*on the PATH/);
  const onPath = await program('path', 'treelined');
  assert.equal(findDaemon(places), onPath);
  const own = await program('extension', 'bin', 'treelined');
  assert.equal(findDaemon(places), own);
  const env = { ...places.env, TREELINED_BIN: await program('env') };
  assert.equal(findDaemon({ ...places, env }), env.TREELINED_BIN);
  const setting = await program('setting');
  assert.equal(findDaemon({ ...places, env, setting }), setting);
  assert.throws(
    () => findDaemon({ ...places, env, setting: '/nowhere' }),
    /tried: \/nowhere \(the setting/,
  );
});

const ROW: TreeNode = {
  id: 'u1',
  parentId: null,
  type: 'message',
  role: 'user',
  preview: 'Why?',
  timestamp: '2026-11-22T08:16:21.595Z',
  childCount: 1,
  depth: 0,
  indent: 0,
  onActivePath: true,
  isLeaf: false,
  isBranchPoint: false,
};

test('rows have an icon by kind, and marks before a text that may be cut off', () => {
  assert.equal(lookOf(ROW).icon, 'account');
  const leaf = lookOf({ ...ROW, isLeaf: true, label: 'here' });
  assert.equal(leaf.label, '◉ [here] Why?');
  assert.match(leaf.spoken, /user, here, Why\?, leaf/);
  const failed = lookOf({ ...ROW, isError: true });
  assert.equal(failed.icon, 'error');
  assert.equal(failed.spoken, 'user, Why?, failed');
  // What is odd about an entry was not shown.
  const odd = { ...ROW, flags: ['orphan'], archived: true, folded: { branches: 1, entries: 2 } };
  assert.equal(lookOf(odd).description, '(orphan) (archived)');
  // One word for one thing: a note was a message here, and a shell a command.
  assert.equal(kindOf({ ...ROW, role: 'custom_message' }), 'note');
  assert.equal(kindOf({ ...ROW, role: 'bashExecution' }), 'shell');
  const folded = { branches: 1, entries: 2 };
  assert.equal(lookOf({ ...ROW, folded }).icon, 'git-branch');
  // The daemon counts characters, VS Code counts UTF-16 code units.
  const match = { snippet: '🎉 a cache', ranges: [[4, 9]] as [number, number][] };
  const { label, highlights } = lookOf({ ...ROW, label: 'x', match });
  assert.equal(label.slice(...(highlights[0] ?? [0, 0])), 'cache');
});

test('the status bar has the session and the leaf', () => {
  assert.equal(positionText('A tour', ROW, false), '$(git-branch) A tour · user: Why?');
  assert.match(positionText('A tour', undefined, true), /at the beginning \$\(person-add\)$/);
});

test('entries of any shape have a text', () => {
  const entry = (more: object) => ({ id: 'x', ...more }) as never;
  assert.equal(
    entryText(entry({ type: 'message', message: { role: 'user', content: 'Hi.' } })),
    'Hi.',
  );
  const fenced = entryText(
    entry({ type: 'message', message: { role: 'toolResult', content: 'a ``` b' } }),
  );
  assert.equal(fenced, '````\na ``` b\n````');
  assert.match(entryText(entry({ type: 'odd' })), /"type": "odd"/);
  assert.equal(
    entryText(
      entry({ type: 'message', message: { role: 'user', content: [null, { type: 'image' }] } }),
    ),
    'null\n\n(image)',
  );
  assert.equal(
    speaker(entry({ type: 'message', message: { role: 'toolResult', toolName: 'bash' } })),
    'tool bash',
  );
});

test('short texts are as people say them', () => {
  assert.equal(shorten('a\n b  c', 10), 'a b c');
  assert.equal(shorten('🎉🎉🎉', 2), '🎉…');
  assert.deepEqual(unitRanges('🎉a', [[1, 2]]), [[2, 3]]);
  assert.equal(count(1, 'entry', 'entries'), '1 entry');
  assert.equal(ago('2026-01-01T00:00:00Z', Date.parse('2026-01-01T05:00:00Z')), '5h');
  assert.equal(ago('never'), '');
});

test('a text in the page cannot end its script, and nothing is loaded', () => {
  const assets = {
    socket: '',
    script: 'x="</script>"',
    style: '</style>@media(prefers-color-scheme:dark){}',
  };
  const html = pageHtml(assets, { nonce: 'n', sessionId: '"><b>', isDark: true });
  assert.equal(html.match(/<\/script>/g)?.length, 2);
  assert.equal(html.match(/<\/style>/g)?.length, 1);
  assert.match(html, /@media all\{\}/);
  assert.match(html, /data-session="&quot;>&lt;b>"/);
  assert.match(html, /default-src 'none'/);
  assert.match(missingPage(), /not in this build/);
});

// The message was once "A hook failed", without the name of the hook and its text.
test('a hook that fails is named with what it said', () => {
  assert.equal(reasonText('hookFailed', 'guard', 'exit\ncode 3'), 'guard failed: exit code 3');
  assert.equal(reasonText('cancelledByClient', 'guard'), 'guard cancelled.');
  assert.match(reasonText('hookFailed'), /A hook failed/);
});

// Only C0, DEL and C1 were once replaced.
test('what a hook said has no control characters', () => {
  const said = 'a\u202eb\u2028c\u200fd\u{e0041}e\u001b[2J';
  const shown = 'a\ufffdb c\ufffdd\ufffde\ufffd[2J';
  assert.equal(reasonText('hookFailed', 'guard', said), `guard failed: ${shown}`);
  assert.equal(reasonText('odd', said), `The move ended: odd. (${shown})`);
});

// oh-my-pi writes such entries. The raw name of their type was once shown.
test('a change of the mode looks like other changes of settings', () => {
  const row = (type: string) => lookOf({ type, id: 'x', preview: 'plan' } as TreeNode).icon;
  assert.equal(row('mode_change'), row('model_change'));
});

test('a session is listed with its age, its size and the tool that it comes from', () => {
  const modified = new Date(Date.now() - 3 * 3_600_000).toISOString();
  assert.equal(sessionFacts({ modified, messageCount: 1 }), '3h · 1 message');
  const imported = { modified, messageCount: 2, source: 'codex' };
  assert.equal(sessionFacts(imported), '3h · 2 messages · codex');
});
