;;; treelined.el --- Conversations of AI agents as trees  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, processes
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; treelined is a daemon that keeps conversations of AI agents as trees.
;; This package shows them: browse the tree, go back to any message,
;; summarize the branch that is left behind, undo moves, search all sessions,
;; and send the next message.
;;
;; `M-x treelined' lists the sessions; ? in each buffer shows its commands.
;; The README is the manual.
;;
;;   treelined-errors   advice about each kind of error
;;   treelined-client   the daemon, calls and notifications
;;   treelined-session  open sessions and their leaves
;;   treelined-row      a row of the tree as text
;;   treelined-tree     the tree's buffer
;;   treelined-entry    entries, summaries, comparisons
;;   treelined-compose  drafts and messages
;;   treelined-actions  commands of the tree
;;   treelined-branch   names and archive of branches
;;   treelined-continue going on in another tool
;;   treelined-list     the list of sessions
;;   treelined-sorting  tags, pins, families, candidates
;;   treelined-search   the search over all sessions
;;   treelined-ask      commands and questions of other programs
;;   treelined-import   imports and exports
;;   treelined-menu     menus

;;; Code:

(require 'treelined-menu)

(provide 'treelined)
;;; treelined.el ends here
