;;; treelined-branch.el --- Names and archive of branches  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Any entry of a branch stands for it.  The daemon draws the tree without archived
;; branches, and counts them.  The result of every change names the inverse change, and
;; every change is announced, so that all trees are drawn again.

;;; Code:

(require 'treelined-actions)

(defun treelined-branch--say (format &rest keys)
  "Show FORMAT with the KEYS of commands of the tree."
  (message "treelined: %s"
           (apply #'format format
                  (mapcar (lambda (command)
                            (substitute-command-keys
                             (format "\\<treelined-tree-mode-map>\\[%s]" command)))
                          keys))))

(defun treelined-branch--node ()
  "Return the row at point; signal an error if it stands for several branches."
  (let ((node (treelined-actions--node)))
    (when (> (or (plist-get (plist-get node :folded) :branches) 1) 1)
      (user-error "These are several branches; open the row, and choose one"))
    node))

(defun treelined-tree-name-branch (name)
  "Call the branch of the entry at point NAME, or remove its name if NAME is empty."
  (interactive (progn
                 (treelined-branch--node)
                 (list (read-string "Name of this branch (empty: none): "))))
  (treelined-actions--call
   'name_branch (list :entryId (plist-get (treelined-branch--node) :id) :name name)
   (lambda (result)
     (let* ((now (plist-get result :name))
            (inverse (plist-get result :inverse))
            (before (plist-get (plist-get inverse :params) :name)))
       (treelined-branch--say
        (treelined-row-shown
         (string-replace "%" "%%"
                         (concat (if now
                                     (format "this branch is called “%s”" now)
                                   "this branch has no name")
                                 (cond (before (format "; it was “%s”" before))
                                       ((and now inverse) "; an empty name removes it"))))
         " "))))))

(defun treelined-branch--archived (result)
  "Show what RESULT of `archive_branch' has changed, and how to undo it."
  (cond ((plist-get result :cancelled)
         (treelined-actions--say result))
        ((equal (plist-get result :oldLeafId) (plist-get result :newLeafId))
         (treelined-branch--say "archived; %s shows it, %s brings it back"
                                'treelined-tree-show-archived 'treelined-tree-archive))
        (t
         (treelined-branch--say "archived, and the leaf is at its fork; %s brings both back" 'treelined-tree-undo))))

(defun treelined-tree-archive ()
  "Archive the branch of the entry at point, or bring it back if it is archived.
The leaf moves out of the branch first."
  (interactive nil treelined-tree-mode)
  (let* ((node (treelined-branch--node))
         (params (list :entryId (plist-get node :id))))
    (if (plist-get node :archived)
        (treelined-actions--call
         'unarchive_branch params
         (lambda (_)
           (treelined-branch--say "the branch is back; %s archives it again"
                                  'treelined-tree-archive)))
      (treelined-actions--call 'archive_branch params #'treelined-branch--archived))))

;;;; Side questions

(defun treelined-tree-ask-aside (question)
  "Ask QUESTION on a branch of the background, beside the conversation."
  (interactive "sBy the way: " treelined-tree-mode)
  (when (string-blank-p question)
    (user-error "The question is blank"))
  (treelined-actions--call
   'append_message
   (list :message (list :role "user" :content (string-trim question))
         :parentId (or (treelined-session-leaf-id treelined-session) :null)
         :keepLeaf t :group "btw")
   (lambda (_)
     (treelined-branch--say "asked beside the conversation; %s brings it in"
                            'treelined-tree-keep-aside))))

(defun treelined-tree-keep-aside ()
  "Bring the side question at point into the conversation, with its answer."
  (interactive nil treelined-tree-mode)
  (treelined-actions--call
   'keep_branch (list :entryId (plist-get (treelined-branch--node) :id))
   (lambda (result)
     (treelined-branch--say
      (if (equal "none" (plist-get result :durability))
          "it is in the conversation already"
        "kept; its messages are at the leaf")))))

(defun treelined-tree-show-archived ()
  "Show archived branches, or hide them."
  (interactive nil treelined-tree-mode)
  (when (zerop treelined-tree-archived-count)
    (user-error "No branch is archived"))
  (setq treelined-tree-archived (not treelined-tree-archived))
  (treelined-tree-reload))

(provide 'treelined-branch)
;;; treelined-branch.el ends here
