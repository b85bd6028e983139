// The parts of the window that commands use.

import type { App } from '../app.js';
import type { Asking } from '../asking.js';
import type { Composer } from '../composer.js';
import type { Documents } from '../documents.js';
import type { PagePanel } from '../pagePanel.js';
import type { SessionsView } from '../sessionsView.js';
import type { TreeView } from '../treeView.js';

export interface Parts {
  app: App;
  tree: TreeView;
  sessions: SessionsView;
  composer: Composer;
  documents: Documents;
  asking: Asking;
  page: PagePanel;
}
