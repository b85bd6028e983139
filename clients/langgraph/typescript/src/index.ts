// The exports of the package.

export { NotAThread, type SaverOptions, TreelinedSaver } from './saver.js';
export { UnreadableValue } from './values.js';
