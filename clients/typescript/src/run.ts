// Runs a program of the platform package in place of this process. The commands that npm installs use it.

import { spawn } from 'node:child_process';
import { PLATFORM, programOfPlatform } from './program.js';

/** The signals that are passed on to the program. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs the program with the arguments of this process. This process ends with the same exit code or signal. */
export function run(name: string): void {
  // TREELINED_BIN may be the path of this command, so it is not used.
  const command = programOfPlatform(name);
  if (command === undefined) {
    console.error(
      `error: there is no ${name} for this platform: the package ${PLATFORM} is not installed`,
    );
    console.error(
      `  try: npm install ./${PLATFORM}-VERSION.tgz of the release beside this package, or npm install --include=optional`,
    );
    process.exitCode = 1;
    return;
  }
  const child = spawn(command, process.argv.slice(2), { stdio: 'inherit' });
  const pass = (signal: NodeJS.Signals): unknown => child.kill(signal);
  for (const signal of SIGNALS) process.on(signal, pass);
  child.on('error', (error) => {
    console.error(`error: ${command} cannot be started: ${error.message}`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    for (const known of SIGNALS) process.off(known, pass);
    if (signal) process.kill(process.pid, signal);
    else process.exitCode = code ?? 1;
  });
}
