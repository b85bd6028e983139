// Builds dist/, for `npm install` of this folder and for `npm pack`. When another package installs this folder, npm
// does not install the build tools, so this script installs them first.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('..', import.meta.url));

// npm sets these variables for the other package, so they are removed.
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(config_(local_|global_)?prefix|package_)/i.test(name),
  ),
);

const run = (...args) => execFileSync('npm', args, { cwd: folder, env, stdio: 'inherit' });

const compiler = new URL('../node_modules/typescript/package.json', import.meta.url);
if (!existsSync(compiler)) {
  run('ci', '--ignore-scripts', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error');
}
run('run', '--silent', 'build');
