// The exports of the package.

export {
  type Answerer,
  type Answerers,
  type BeforeEventName,
  Client,
  type CommandRunner,
  type ConnectOptions,
  connect,
  type QuestionName,
} from './client.js';
export { type OtherType, otherType } from './entry.js';
export { type ClientErrorKind, TreelinedError } from './errors.js';
export {
  type ErrorDetails,
  type Methods,
  type Notifications,
  PROTOCOL_VERSION,
  SCHEMA_HASH,
} from './generated/protocol.js';
export type * from './generated/types.js';
export type { Session as SessionInfo } from './generated/types.js';
export type { CallOptions } from './options.js';
export { Session } from './session.js';
export { sessionIdOfKey } from './stores.js';
