// Tests of the package: its imports, its manifest and its content.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { folder, packageDir } from './fixture.js';

const run = promisify(execFile);
const at = (path: string) => new URL(path, packageDir);
const text = (path: string) => readFile(at(path), 'utf8');

interface Manifest {
  private?: boolean;
  activationEvents: string[];
  capabilities: { untrustedWorkspaces: { supported: unknown; restrictedConfigurations: string[] } };
  contributes: {
    commands: { command: string }[];
    menus: Record<string, { command: string }[]>;
    keybindings: { command: string }[];
    configuration: { properties: Record<string, { scope?: string }> };
    walkthroughs: { steps: { media: { image: string } }[] }[];
  };
}

const manifest = async () => JSON.parse(await text('package.json')) as Manifest;

test('the logic does not import vscode', async () => {
  const files = await readdir(at('src/core/'));
  assert.ok(files.length > 10);
  for (const file of files)
    assert.doesNotMatch(await text(`src/core/${file}`), /from 'vscode'|from '\.\.\//, file);
});

test('files are short', async () => {
  for (const file of await readdir(at('src/'), { recursive: true })) {
    if (!file.endsWith('.ts')) continue;
    assert.ok((await text(`src/${file}`)).split('\n').length <= 600, file);
  }
});

test('every command of the manifest is there, and every command is in the manifest', async () => {
  const { contributes } = await manifest();
  const declared = contributes.commands.map(({ command }) => command).sort();
  const sources = await Promise.all(
    (await readdir(at('src/commands/'))).map((file) => text(`src/commands/${file}`)),
  );
  const made = [...sources.join('\n').matchAll(/^ {4}'(treelined\.\w+)':/gm)].map(
    (match) => match[1],
  );
  assert.deepEqual(made.sort(), declared);
  const used = [...Object.values(contributes.menus).flat(), ...contributes.keybindings];
  for (const { command } of used) assert.ok(declared.includes(command), command);
});

test('settings that start programs cannot be set by a workspace', async () => {
  const { contributes, capabilities, activationEvents } = await manifest();
  const { properties } = contributes.configuration;
  for (const name of ['command', 'arguments', 'shared', 'sessionDirectory', 'summarizer']) {
    assert.equal(properties[`treelined.${name}`]?.scope, 'machine', name);
    assert.ok(
      capabilities.untrustedWorkspaces.restrictedConfigurations.includes(`treelined.${name}`),
    );
  }
  assert.equal(capabilities.untrustedWorkspaces.supported, 'limited');
  assert.deepEqual(activationEvents, []);
});

test('README.md has all settings, and what it shows exists', async () => {
  const readme = await text('README.md');
  const { contributes } = await manifest();
  for (const name of Object.keys(contributes.configuration.properties)) {
    assert.ok(readme.includes(`\`${name}\``), name);
  }
  const images = [...readme.matchAll(/\]\((media\/[\w-]+\.png)\)/g)].map((match) => match[1] ?? '');
  assert.ok(images.length >= 3);
  const steps = contributes.walkthroughs.flatMap((walkthrough) => walkthrough.steps);
  for (const image of [...images, ...steps.map(({ media }) => media.image)]) await stat(at(image));
});

test('the package of a platform has the daemon, the bundle and nothing else', async (t) => {
  const dir = await folder(t);
  const binary = join(dir, 'daemon');
  await writeFile(binary, '#!/bin/sh\necho stand-in\n');
  await chmod(binary, 0o644);
  const vsix = join(dir, 'out.vsix');
  const tool = fileURLToPath(at('tools/package.js'));
  await run(process.execPath, [tool, binary, 'linux-x64', vsix]);
  await run('python3', ['-m', 'zipfile', '-e', vsix, dir]);
  const files = (await readdir(join(dir, 'extension'), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(dir, 'extension/').length))
    .filter((name) => !/^(media|dist\/page)\//.test(name));
  assert.deepEqual(files.sort(), [
    'LICENSE.txt',
    'bin/treelined',
    'dist/extension.cjs',
    'package.json',
    'readme.md',
  ]);
  assert.match(await readFile(join(dir, 'extension/bin/treelined'), 'utf8'), /stand-in/);
  const meta = await readFile(join(dir, 'extension.vsixmanifest'), 'utf8');
  assert.match(meta, /TargetPlatform="linux-x64"/);
  // The archive keeps the modes of files, so that the daemon is executable.
  const { stdout } = await run('python3', [
    '-c',
    `import zipfile,sys; print(oct(zipfile.ZipFile(sys.argv[1]).getinfo('extension/bin/treelined').external_attr >> 16))`,
    vsix,
  ]);
  assert.equal(stdout.trim(), '0o100755');
  // The bundle contains all modules except those of VS Code and Node.
  const bundle = await readFile(join(dir, 'extension/dist/extension.cjs'), 'utf8');
  const required = [...bundle.matchAll(/require\("([^"]+)"\)/g)].map((match) => match[1] ?? '');
  for (const name of new Set(required)) assert.match(name, /^(node:|vscode$)/);
});
