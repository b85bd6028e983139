// Errors for people: what happened, and what to do about it in VS Code.

import { type ClientErrorKind, type ErrorKind, TreelinedError } from 'treelined';

/** Kinds of errors that come from this extension. */
export type OwnErrorKind = 'untrusted' | 'pageMissing';

export type AnyKind = ErrorKind | ClientErrorKind | OwnErrorKind;

/** An error of this extension, which then makes no call. */
export class ExtensionError extends Error {
  override readonly name = 'ExtensionError';

  constructor(
    readonly kind: OwnErrorKind,
    message: string,
  ) {
    super(message);
  }
}

/** A remedy for an error: the title of a button, and the command that it runs. */
export interface Remedy {
  title: string;
  command: string;
  args?: string[];
}

/** Advice about an error of some kind. */
export interface Advice {
  text: string;
  remedy?: Remedy;
}

const LOG: Remedy = { title: 'Show Log', command: 'treelined.showLog' };
const REFRESH: Remedy = { title: 'Refresh', command: 'treelined.refresh' };
const RESTART: Remedy = { title: 'Restart Daemon', command: 'treelined.restart' };
const SESSIONS: Remedy = { title: 'Sessions', command: 'treelined.open' };
const TRASH: Remedy = { title: 'Restore a Session', command: 'treelined.restoreSession' };
const TRUST: Remedy = { title: 'Manage Trust', command: 'workbench.trust.manage' };

const setting = (name: string): Remedy => ({
  title: 'Open Settings',
  command: 'workbench.action.openSettings',
  args: [`treelined.${name}`],
});

const DEFECT: Advice = {
  text: 'This is a defect of the extension; please report it with the log.',
  remedy: LOG,
};

const again = (text: string): Advice => ({ text, remedy: REFRESH });

/** Advice about every kind of error. */
export const ADVICE: Readonly<Record<AnyKind, Advice>> = {
  parseError: DEFECT,
  invalidRequest: DEFECT,
  batchUnsupported: DEFECT,
  methodNotFound: { text: 'The daemon is too old for this; update treelined.', remedy: RESTART },
  invalidParams: { text: 'Correct the input, or update treelined.' },
  internalError: { text: 'The daemon has a defect; please report it with the log.', remedy: LOG },
  shuttingDown: { text: 'Try again: a new daemon is started.', remedy: RESTART },
  sessionNotFound: { text: 'Choose a session, or restore it from the trash.', remedy: SESSIONS },
  sessionBusy: {
    text: 'Wait until the running move, compaction or turn ends, or abort it.',
    remedy: { title: 'Abort the Move', command: 'treelined.abort' },
  },
  sessionLocked: { text: 'Another program is writing; try again in a moment.' },
  headerMissing: { text: 'The file is not a session; `treelined doctor` examines it.' },
  versionUnsupported: { text: 'A newer program has written this session; update treelined.' },
  readOnly: { text: 'The session is open for reading only; its file cannot be changed.' },
  sessionDeleted: { text: 'The file is gone; bring the session back.', remedy: TRASH },
  sessionReplaced: again('The file was replaced; read it again.'),
  sessionExists: { text: 'Open that session, or choose another name.', remedy: SESSIONS },
  importBusy: { text: 'Wait until the other import ends.' },
  sessionErased: { text: 'It was erased for the team; start another session.' },
  cursorExpired: { text: 'Ask again.' },
  fileExists: { text: 'Choose another path, or let the file be replaced.' },
  importFailed: { text: 'Correct the cause, and import again.' },
  entryNotFound: again('The entry is not in this session; read the tree again.'),
  leafMoved: again('Others have written here. Look at the tree, then try again.'),
  entryInvalid: { text: 'Correct the member that the message names.' },
  treeChanged: again('The tree has changed meanwhile; read it again.'),
  nestingTooDeep: again('Show a part of the tree only.'),
  duplicateEntryId: { text: 'The entry is there already; send it again to append another one.' },
  notAUserMessage: { text: 'Choose a message of the user.' },
  nothingToUndo: { text: 'There is no move to undo or redo.' },
  unansweredToolCalls: { text: 'Choose an entry below the results of its tools.' },
  nothingToExport: { text: 'Export another part of the session.' },
  summarizerUnavailable: {
    text: 'Go without a summary, or choose a summarizer in the settings.',
    remedy: setting('summarizer'),
  },
  summarizerFailed: {
    text: 'Nothing was moved. Try again, or go without a summary.',
    remedy: LOG,
  },
  nothingToCompact: { text: 'Try again when the conversation has grown.' },
  contextTooLarge: { text: 'Have earlier turns summarized, or take the last ones only.' },
  eventNotPending: { text: 'The question is over.' },
  noUser: { text: 'No program is there to show the question.' },
  commandExists: { text: 'Choose another name for the command.' },
  commandNotFound: {
    text: 'Choose one of the commands that programs offer.',
    remedy: { title: 'Commands', command: 'treelined.runCommand' },
  },
  commandFailed: { text: 'The program that offers the command says why.' },
  storageFull: { text: 'Make room on the disk, then try again; nothing is lost.' },
  storageIo: { text: 'Check the disk and the file.', remedy: LOG },
  pathDenied: { text: 'Check the rights of the file, or choose another one.' },
  durabilityUnknown: { text: 'Check the disk: the entry may be lost if the machine stops.' },
  logUnavailable: { text: 'The stream of the team does not answer; try again in a moment.' },
  logConflict: { text: 'Others write to the session; try again in a moment.' },
  logForeign: { text: 'Find the program that writes to this session in the stream of the team.' },
  logDiverged: { text: 'Fork the session, and pull the stream of the team into a new file.' },
  logRewound: {
    text: 'Keep the file, and ask who runs the servers; `treelined push` fills the stream again.',
  },
  logMisconfigured: { text: '`treelined doctor --cluster` says what is wrong with the stream.' },
  logDenied: { text: 'Correct the credentials or certificates of the team.' },
  erasureUnsupported: { text: 'Only a team on PostgreSQL can erase; delete the session instead.' },
  payloadTooLarge: {
    text: 'The stream of the team takes entries of up to 64 MiB, if it has a bucket for them: `treelined doctor --cluster --create` makes it.',
  },
  requestTooLarge: { text: 'Send less at once.' },
  responseTooLarge: { text: 'Show a part only: fold, filter, or open a single entry.' },
  overloaded: { text: 'Try again in a moment.' },
  memoryExhausted: { text: "Others use the daemon's memory. Try again in a moment." },
  cancelled: { text: 'Nothing was changed.' },
  disconnected: {
    text: 'The next command starts the daemon again; your place and your drafts are kept.',
    remedy: LOG,
  },
  timeout: { text: 'The daemon takes long. Try again, or restart it.', remedy: RESTART },
  versionMismatch: {
    text: 'Update treelined and this extension to the same version.',
    remedy: setting('command'),
  },
  untrusted: { text: 'Trust this folder to start the daemon.', remedy: TRUST },
  pageMissing: { text: 'Use the tree, or install a build that has the page.' },
};

/** An error as it is shown to a person. */
export interface Problem {
  kind: string;
  /** The error, followed by the advice. */
  text: string;
  remedy?: Remedy;
}

/** Returns the error and what to do about it. Returns undefined for a cancel, which needs no message. */
export function problem(error: unknown): Problem | undefined {
  if (!(error instanceof TreelinedError || error instanceof ExtensionError)) {
    if (error instanceof Error && error.name === 'AbortError') return undefined;
    return {
      kind: 'other',
      text: error instanceof Error ? error.message : String(error),
      remedy: LOG,
    };
  }
  if (error.kind === 'cancelled') return undefined;
  // A newer daemon may have kinds that are not in the table.
  const advice = (ADVICE as Partial<Record<string, Advice>>)[error.kind];
  const retry = error instanceof TreelinedError && error.retryable ? 'Try again.' : '';
  const text = [sentence(error.message), advice?.text ?? retry].filter(Boolean).join(' ');
  return { kind: error.kind, text, ...(advice?.remedy && { remedy: advice.remedy }) };
}

/** Returns `text` with a capital letter and a full stop. */
function sentence(text: string): string {
  // "navigate_tree: no summarizer …" names the method for programmers.
  const plain = text.replace(/^[a-z_.]+: /, '').trim();
  const ended = /[.!?…]$/.test(plain) ? plain : `${plain}.`;
  return ended.charAt(0).toUpperCase() + ended.slice(1);
}
