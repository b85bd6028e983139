// Makes the package for one platform: tools/package.js BINARY [TARGET [OUT]]. BINARY is the daemon for TARGET. TARGET
// is a target of vsce, such as linux-x64 (the default) or darwin-arm64. OUT is the .vsix file to write.

import { execFileSync } from 'node:child_process';
import { chmod, cp, mkdir, readFile, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('..', import.meta.url));
const [binary, target = 'linux-x64', out] = process.argv.slice(2);
if (binary === undefined) {
  console.error('usage: tools/package.js BINARY [TARGET [OUT]]');
  process.exit(2);
}
const { version } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'));
const vsix = resolve(out ?? `treelined-${target}-${version}.vsix`);

await rm(`${folder}/bin`, { recursive: true, force: true });
await mkdir(`${folder}/bin`);
await cp(binary, `${folder}/bin/treelined`);
await chmod(`${folder}/bin/treelined`, 0o755);
try {
  const options = [
    '--no-dependencies',
    '--skip-license',
    '--allow-missing-repository',
    '--no-rewrite-relative-links',
    '--target',
    target,
    '--out',
    vsix,
  ];
  execFileSync('npx', ['vsce', 'package', ...options], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
} finally {
  await rm(`${folder}/bin`, { recursive: true, force: true });
}
console.log(vsix);
