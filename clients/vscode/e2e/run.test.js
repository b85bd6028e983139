// Tests the extension in a real VS Code. VSIX is the path of its package, and SCREENSHOTS a folder for pictures.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Editor, PATIENCE_MS } from './editor.js';
import { otherProgram, writeTour } from './tour.js';

const vsix = process.env.VSIX;
/** Whether the package has the page of clients/web. */
const hasPage = process.env.HAS_PAGE === '1';
let editor;
let other;

before(async () => {
  editor = await Editor.start(vsix);
  other = await otherProgram(editor);
  await writeTour(other, editor.folder);
  await editor.open();
  await editor.page.locator('.activitybar [aria-label="Treelined"]').first().click();
});

after(async () => {
  await other?.close();
  await editor?.stop();
});

/** A test that saves a picture if it fails. */
function check(name, run) {
  test(name, async () => {
    try {
      await run();
    } catch (error) {
      await editor.page.screenshot({ path: `/tmp/treelined-vscode ${name}.png` }).catch(() => {});
      throw error;
    }
  });
}

const until = async (isTrue, what) => {
  const end = Date.now() + PATIENCE_MS;
  while (!(await isTrue())) {
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

const status = () => editor.page.locator('.statusbar').innerText();

check('a session is listed, and a click shows its tree and position', async () => {
  await editor.row('A tour').first().click();
  await editor.row('Add the import.').first().waitFor();
  // The rows are the session, the path with its summary, and one row for the branch that was left.
  assert.equal((await editor.rows()).length, 7);
  await until(
    async () => (await status()).includes('A tour · assistant: Added'),
    'the position is shown',
  );
});

check('a branch that was left is one row that opens', async () => {
  await editor.select(/entries · Clear the/);
  await editor.page.keyboard.press('ArrowRight');
  await editor.row('make clean all').first().waitFor();
  await editor.row('I clean it.').first().click();
  await editor.page
    .locator('.editor-container .view-lines', { hasText: 'calls' })
    .first()
    .waitFor();
  await editor.screenshot('tree');
});

check('an entry of another program appears without a key', async () => {
  await other.appendMessage({
    sessionId: 'tour',
    entryId: 'u4',
    message: { role: 'user', content: 'From another window.' },
  });
  await editor.row('From another window.').first().waitFor();
});

check('a label is set by the menu of an entry', async () => {
  await editor.select('Add the import.');
  await editor.command('Treelined: Label');
  await editor.answer('Label: Add the import.', 'the way');
  await editor.row('[the way] Add the import.').first().waitFor();
});

check('two branches are compared in an editor for differences', async () => {
  await editor.select(/^\s*Cleared/);
  await editor.command('Treelined: Compare');
  await editor.page.locator('.monaco-diff-editor').first().waitFor();
  await until(
    async () =>
      (await editor.page.locator('.monaco-diff-editor').first().innerText()).includes('Clear'),
    'the branch is shown',
  );
  await editor.screenshot('compare');
});

check(
  'going on in another tool says what is lost, and types the command without running it',
  async () => {
    await editor.select('Add the import.');
    await editor.command('Treelined: Continue in Another Tool…');
    await editor.choice('Codex').click();
    await editor.choice('Go on with a summary').waitFor();
    const says = editor.page.locator('.quick-input-widget input').first();
    await until(
      async () => /^\d+ messages, about \d+ tokens/.test(await says.getAttribute('placeholder')),
      'it is said what is handed over',
    );
    await editor.screenshot('continue');
    await editor.choice('Go on').click();
    const terminal = editor.page.locator('.terminal-wrapper.active .xterm-rows').first();
    await terminal.waitFor();
    await until(
      async () => (await terminal.innerText()).replace(/\s/g, '').includes('continue--incodex--'),
      'the command is typed',
    );
    // Only Enter runs the command.
    assert.equal(existsSync(join(editor.dir, '.codex')), false);
    await editor.command('Terminal: Kill the Active Terminal Instance');
  },
);

check('a move asks for a summary, and the summary becomes the leaf', async () => {
  await editor.select(/^\s*Cleared/);
  await editor.command('Treelined: Go to This Entry');
  await editor.choice('Leave a summary').waitFor();
  await editor.screenshot('navigate');
  await editor.choice('Leave a summary').click();
  await editor.message('Moved. A summary of the branch is the leaf.').waitFor();
  await editor.row('◉ Tried “Add the import.”').first().waitFor();
});

check('a move is undone', async () => {
  await editor.command('Treelined: Undo the Last Move');
  await until(async () => (await status()).includes('assistant: Added'), 'the leaf is back');
  await editor.page.locator('.monaco-list-row.selected', { hasText: '◉ Added' }).first().waitFor();
});

check('a message that was gone back to is a draft, which is sent as a new branch', async () => {
  // A summary may contain the same words.
  await editor.select(/^\s*\[the way\] Add the import\./);
  await editor.command('Treelined: Go to This Entry');
  await editor.choice('Go without a summary').click();
  await editor.message('Send the text with Ctrl+Enter, then “Continue in Another Tool”').waitFor();
  await editor.draft('Add the import.');
  await editor.page.keyboard.type(' Both of them.');
  await editor.screenshot('draft');
  await editor.page.keyboard.press('Control+Enter');
  await editor.row('◉ Add the import. Both of them.').first().waitFor();
});

check('the daemon dies, and the next command finds the place and the draft again', async () => {
  await editor.command('Treelined: Write a Message');
  await editor.draft('');
  await editor.page.keyboard.type('Still here');
  const [pid] = await daemons();
  process.kill(pid, 'SIGKILL');
  await until(async () => !(await daemons()).includes(pid), 'the daemon has ended');
  await editor.page.keyboard.type(', every key of it.');
  await editor.page.keyboard.press('Control+Enter');
  await editor.row('◉ Still here, every key of it.').first().waitFor();
});

check('a window that is loaded again has its session and its draft', async () => {
  await editor.command('Treelined: Write a Message');
  await editor.draft('');
  await editor.page.keyboard.type('Kept over a restart.');
  // VS Code writes backups a second after the last key.
  await editor.page.waitForTimeout(3000);
  await editor.page.reload();
  await editor.row('Add the import.').first().waitFor();
  await editor.draft('Kept over a restart.');
  await editor.page.locator('.editor-actions [aria-label*="Send"]').first().waitFor();
  await editor.page.keyboard.press('Control+Enter');
  await editor.row('◉ Kept over a restart.').first().waitFor();
});

check('a branch is named, put away, counted and brought back', async () => {
  await editor.select(/entries · Clear the/);
  await editor.command('Treelined: Name This Branch…');
  await editor.answer('Name of the branch', 'the cache');
  await editor.message('The branch is called “the cache”.').waitFor();
  await editor.row('entries · the cache').first().waitFor();
  await editor.select('entries · the cache');
  await editor.command('Treelined: Archive This Branch');
  await editor.message('The branch is archived.').waitFor();
  await editor.row('1 archived branch').first().waitFor();
  await editor.screenshot('archived');
  await editor.row('1 archived branch').first().click();
  await editor.row('Hide 1 archived branch').first().waitFor();
  await editor.message('The branch is archived.').getByText('Bring It Back').click();
  await editor.row('entries · the cache').first().waitFor();
  await until(
    async () => !(await editor.rows()).some((row) => row.includes('archived branch')),
    'no branch is archived',
  );
});

check('a search of all sessions finds an entry, and shows it in the tree', async () => {
  await editor.command('Treelined: Search All Sessions');
  await editor.page.locator('.quick-input-widget input').first().fill('linker');
  await editor.choice('linker').waitFor();
  await editor.screenshot('search');
  await editor.choice(/^Cleared/).click();
  const found = editor.page.locator('.monaco-list:focus-within .monaco-list-row.selected.focused');
  await found
    .filter({ hasText: /^\s*Cleared/ })
    .first()
    .waitFor();
});

check('the page is shown in a webview, or says what to do while the build has none', async () => {
  await editor.command('Treelined: Open the Page');
  const page = editor.page.frameLocator('iframe.webview').frameLocator('#active-frame');
  if (hasPage) {
    await page.getByText('Kept over a restart.').first().waitFor();
    await page.getByText('A stale cache, or a missing import.').last().waitFor();
    await editor.screenshot('page');
  } else await page.getByText('The page is not in this build').waitFor();
});

/** The ids of the daemons that VS Code has started. */
function daemons() {
  const { dir } = editor;
  return editor.programs((line) => line.startsWith(dir) && line.includes('bin/treelined\0'));
}

/** The commands that write a summary were once offered without a summarizer. */
test('without a summarizer no command is offered that needs one', async () => {
  const plain = await Editor.start(vsix, { settings: { 'treelined.summarizer': 'none' } });
  const program = await otherProgram(plain);
  try {
    await writeTour(program, plain.folder);
    const offers = async (shown) => {
      await shown.row('A tour').first().click();
      await shown.row('Add the import.').first().waitFor();
      await shown.row('Add the import.').first().click({ button: 'right' });
      const menu = shown.page.locator('.monaco-menu').last();
      await menu.getByText('Fork into a New Session').waitFor();
      const text = await menu.innerText();
      await shown.page.keyboard.press('Escape');
      return text.includes('Append a Summary of This Branch');
    };
    await plain.open();
    await plain.page.locator('.activitybar [aria-label="Treelined"]').first().click();
    assert.equal(await offers(plain), false);
    assert.equal(await offers(editor), true);
  } finally {
    await program.close();
    await plain.stop();
  }
});

test('nothing is started in a folder that is not trusted', async () => {
  const untrusted = await Editor.start(vsix, { isTrusted: false });
  const trusting = editor;
  try {
    await untrusted.open();
    await untrusted.page.locator('.activitybar [aria-label="Treelined"]').first().click();
    await untrusted.page.getByText('This folder is not trusted').waitFor();
    editor = untrusted;
    assert.deepEqual(await daemons(), []);
  } finally {
    editor = trusting;
    await untrusted.stop();
  }
});

test('with two folders and a shared daemon, questions and commands of programs reach the person, and a move is cancelled', async () => {
  const shared = await Editor.start(vsix, { settings: { 'treelined.shared': true } });
  // Whether moves wait until they are cancelled.
  let holdsMoves = false;
  const holdMove = (_event, signal) =>
    holdsMoves
      ? new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve(undefined), { once: true });
        })
      : undefined;
  const program = await otherProgram(shared, {
    shared: true,
    clientInfo: { name: 'guard' },
    answers: { session_before_tree: holdMove },
  });
  try {
    await shared.twoFolders();
    await writeTour(program, shared.folder);
    await program.offerCommand(
      { name: 'todo', argumentHint: 'TEXT' },
      ({ args }) => `noted: ${args}`,
    );
    await shared.open();
    await shared.page.locator('.activitybar [aria-label="Treelined"]').first().click();
    // Each folder has its sessions below it.
    await shared.row('second').first().waitFor();
    await shared.row('A tour').first().click();
    await shared.row('Add the import.').first().waitFor();
    const asked = program.askUser({
      kind: 'confirm',
      title: 'Leave the branch?',
      message: 'Its tests fail.',
    });
    await shared.message('guard asks: Leave the branch?').waitFor();
    await shared.screenshot('question');
    await shared.message('guard asks').getByText('Yes', { exact: true }).click();
    assert.deepEqual(await asked, { value: true });
    const named = program.askUser({ kind: 'input', title: 'Which name?' });
    await shared.message('guard asks: Which name?').getByText('Answer…').click();
    await shared.answer('guard: Which name?', 'libfoo');
    assert.deepEqual(await named, { value: 'libfoo' });
    const turn = program.askUser({
      kind: 'select',
      title: 'Which way?',
      options: ['left', 'right'],
    });
    await shared.message('guard asks: Which way?').getByText('Answer…').click();
    await shared.choice('right').click();
    assert.deepEqual(await turn, { value: 'right' });
    await shared.command('Treelined: Run a Command of a Program');
    await shared.choice('todo').click();
    await shared.answer('/todo', 'milk');
    await shared.message('noted: milk').waitFor();
    holdsMoves = true;
    await shared.select('A stale cache');
    await shared.command('Treelined: Go to This Entry');
    await shared.choice('Leave a summary').click();
    const running = shared.message('Writing the summary');
    await running.waitFor();
    await shared.screenshot('progress');
    await running.getByText('Cancel', { exact: true }).click();
    await shared.message('The move was aborted; nothing was changed.').waitFor();
    await shared.row('◉ Added').first().waitFor();
  } catch (error) {
    await shared.page.screenshot({ path: '/tmp/treelined-vscode question.png' }).catch(() => {});
    throw error;
  } finally {
    await program.close();
    await shared.stop();
  }
});
