// The exports of the package.

export { KeyTaken } from './session.js';
export { type StoreOptions, TreelinedSessionStore } from './store.js';
