;;; treelined-menu.el --- Keys and menus of all commands  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The keys of the tree and of the list, and the menus that show them.

;;; Code:

(require 'transient)
(require 'treelined-actions)
(require 'treelined-ask)
(require 'treelined-branch)
(require 'treelined-continue)
(require 'treelined-search)
(require 'treelined-import)
(require 'treelined-list)
(require 'treelined-sorting)

;;;; Keys

(let ((map treelined-tree-mode-map))
  (define-key map (kbd "RET") #'treelined-tree-navigate)
  (define-key map (kbd "SPC") #'treelined-tree-preview)
  (define-key map "v" #'treelined-tree-visit)
  (define-key map "n" #'next-line)
  (define-key map "p" #'previous-line)
  (define-key map "]" #'treelined-tree-next-prompt)
  (define-key map "[" #'treelined-tree-previous-prompt)
  (define-key map "}" #'treelined-tree-next-branch)
  (define-key map "{" #'treelined-tree-previous-branch)
  (define-key map (kbd "TAB") #'treelined-tree-toggle-fold)
  (define-key map (kbd "<backtab>") #'treelined-tree-unfold-all)
  (define-key map "a" #'treelined-tree-leaf)
  (define-key map "." #'treelined-tree-leaf)
  (define-key map "o" #'treelined-tree-join)
  (define-key map "j" #'treelined-tree-join)
  (define-key map "u" #'treelined-tree-undo)
  (define-key map "r" #'treelined-tree-redo)
  (define-key map [remap undo] #'treelined-tree-undo)
  (define-key map [remap undo-redo] #'treelined-tree-redo)
  (define-key map [remap keyboard-quit] #'treelined-quit)
  (define-key map "L" #'treelined-tree-label)
  (define-key map "i" #'treelined-compose)
  (define-key map "N" #'treelined-tree-rename)
  (define-key map "f" #'treelined-tree-filter)
  (define-key map "s" #'treelined-tree-query)
  (define-key map "/" #'treelined-tree-search)
  (define-key map (kbd "M-n") #'treelined-tree-next-match)
  (define-key map (kbd "M-p") #'treelined-tree-previous-match)
  (define-key map "S" #'treelined-search)
  (define-key map "F" #'treelined-tree-follow-mode)
  (define-key map "c" #'treelined-tree-compare)
  (define-key map "=" #'treelined-tree-compare)
  (define-key map "m" #'treelined-tree-mark)
  (define-key map "M" #'treelined-tree-mark)
  (define-key map "B" #'treelined-tree-fork)
  (define-key map "@" #'treelined-tree-name-branch)
  (define-key map "D" #'treelined-tree-archive)
  (define-key map "V" #'treelined-tree-show-archived)
  (define-key map "H" #'treelined-tree-continue)
  (define-key map "J" #'treelined-tree-candidates)
  (define-key map "," #'treelined-tree-ask-aside)
  (define-key map ";" #'treelined-tree-keep-aside)
  (define-key map "Y" #'treelined-family)
  (define-key map "#" #'treelined-tag-session)
  (define-key map "!" #'treelined-pin-session)
  (define-key map "K" #'treelined-tree-compact)
  (define-key map ":" #'treelined-run-command)
  (define-key map "x" #'treelined-run-command)
  (define-key map "E" #'treelined-export)
  (define-key map "l" #'treelined)
  (define-key map "A" #'treelined-answer)
  (define-key map "e" #'treelined-tree-end-search)
  (define-key map "k" #'treelined-abort)
  (define-key map "*" #'treelined-tree-unfold-all)
  (define-key map "U" #'treelined-tree-unfold-all)
  (define-key map "R" #'revert-buffer)
  (define-key map "?" #'treelined-tree-menu))

(let ((map treelined-list-mode-map))
  (define-key map (kbd "RET") #'treelined-list-open)
  (define-key map "c" #'treelined-new)
  (define-key map "s" #'treelined-search)
  (define-key map "S" #'treelined-list-sort)
  (define-key map "/" #'treelined-list-filter)
  (define-key map "." #'treelined-list-here)
  (define-key map "a" #'treelined-list-all)
  (define-key map "#" #'treelined-tag-session)
  (define-key map "!" #'treelined-pin-session)
  (define-key map "z" #'treelined-archive-session)
  (define-key map "V" #'treelined-list-archived)
  (define-key map "Y" #'treelined-family)
  (define-key map "i" #'treelined-import)
  (define-key map "D" #'treelined-list-delete)
  (define-key map "R" #'treelined-restore)
  (define-key map "x" #'treelined-run-command)
  (define-key map "A" #'treelined-answer)
  (define-key map "l" #'treelined-log)
  (define-key map "K" #'treelined-stop)
  (define-key map "?" #'treelined-list-menu))

;;;; Menus

(eval-and-compile
  (defconst treelined-menu--tree
    '([["Move the leaf"
        ("RET" "go to this entry" treelined-tree-navigate)
        ("u" "undo" treelined-tree-undo)
        ("r" "redo" treelined-tree-redo)
        ("o" "go to others' leaf" treelined-tree-join)
        ("k" "abort the move" treelined-abort)
        ("J" "choose an answer" treelined-tree-candidates)]
       ["This entry"
        ("SPC" "preview" treelined-tree-preview)
        ("v" "visit" treelined-tree-visit)
        ("L" "label" treelined-tree-label)
        ("m" "mark" treelined-tree-mark)
        ("c" "compare" treelined-tree-compare)
        ("B" "fork" treelined-tree-fork)
        ("H" "elsewhere" treelined-tree-continue)]
       ["Branch"
        ("@" "name" treelined-tree-name-branch)
        ("D" "archive" treelined-tree-archive)
        ("," "ask aside" treelined-tree-ask-aside)
        (";" "keep aside" treelined-tree-keep-aside)]
       ["Search"
        ("/" "this session" treelined-tree-search)
        ("M-n" "next match" treelined-tree-next-match)
        ("M-p" "previous match" treelined-tree-previous-match)
        ("e" "end" treelined-tree-end-search)
        ("S" "all sessions" treelined-search)]]
      [["Rows"
        ("f" "filter" treelined-tree-filter)
        ("s" "matching rows" treelined-tree-query)
        ("TAB" "open, close" treelined-tree-toggle-fold)
        ("*" "all branches" treelined-tree-unfold-all)
        ("V" "archived ones" treelined-tree-show-archived)]
       ["Point"
        ("a" "to the leaf" treelined-tree-leaf)
        ("]" "next prompt" treelined-tree-next-prompt)
        ("[" "previous one" treelined-tree-previous-prompt)
        ("}" "next branching" treelined-tree-next-branch)
        ("{" "previous one" treelined-tree-previous-branch)
        ("F" "preview follows" treelined-tree-follow-mode)]
       ["Session"
        ("i" "message" treelined-compose)
        ("N" "rename" treelined-tree-rename)
        ("#" "tags" treelined-tag-session)
        ("!" "pin" treelined-pin-session)
        ("Y" "family" treelined-family)
        ("K" "compact" treelined-tree-compact)
        ("E" "export" treelined-export)
        ("l" "sessions" treelined)]
       ["Other programs"
        (":" "command" treelined-run-command)
        ("A" "answer" treelined-answer)
        ("R" "read again" revert-buffer)]])
    "The commands of a session's tree, as a menu has them.")

  (defconst treelined-menu--list
    '([["Sessions"
        ("RET" "open" treelined-list-open)
        ("c" "new" treelined-new)
        ("#" "tags" treelined-tag-session)
        ("!" "pin" treelined-pin-session)
        ("z" "archive" treelined-archive-session)
        ("Y" "family" treelined-family)
        ("D" "delete" treelined-list-delete)
        ("R" "restore" treelined-restore)]
       ["List"
        ("/" "only with words" treelined-list-filter)
        ("." "only this directory" treelined-list-here)
        ("a" "all" treelined-list-all)
        ("V" "archived ones" treelined-list-archived)
        ("S" "next order" treelined-list-sort)]
       ["Everything"
        ("s" "search all sessions" treelined-search)
        ("i" "import" treelined-import)
        ("x" "run a command" treelined-run-command)
        ("A" "answer a question" treelined-answer)]
       ["Daemon"
        ("l" "its log" treelined-log)
        ("K" "end it" treelined-stop)]])
    "The commands of the list of sessions, as a menu has them."))

(defmacro treelined-menu--define (name text groups)
  "Define the menu NAME with the documentation TEXT; GROUPS names its commands."
  `(transient-define-prefix ,name ()
     ,text
     ,@(symbol-value groups)))

(treelined-menu--define treelined-menu-tree-wide "The commands of a session's tree." treelined-menu--tree)
(treelined-menu--define treelined-menu-list-wide "The commands of the list." treelined-menu--list)

(defconst treelined-menu--narrow 76
  "A frame with fewer columns has no room for the columns of a menu.")

(defconst treelined-menu--low 23
  "A frame with fewer lines has no room for the lines of a menu.")

(defun treelined-menu--keys (rows)
  "Show the keys of ROWS, groups of commands, in one column."
  (with-help-window "*treelined keys*"
    (seq-doseq (row rows)
      (seq-doseq (group row)
        (princ (format "%s\n" (aref group 0)))
        (seq-doseq (command (seq-drop group 1))
          (princ (format "  %-4s %s\n" (car command) (cadr command))))))))

(defun treelined-menu--show (menu rows)
  "Show MENU, or the keys of ROWS if the frame is too small for it."
  (if (or (< (frame-width) treelined-menu--narrow) (< (frame-height) treelined-menu--low))
      (treelined-menu--keys rows)
    (call-interactively menu)))

;;;###autoload (autoload 'treelined-tree-menu "treelined" nil t)
(defun treelined-tree-menu ()
  "Show the commands of a session's tree; in a small frame, only their keys."
  (interactive)
  (treelined-menu--show #'treelined-menu-tree-wide treelined-menu--tree))

;;;###autoload (autoload 'treelined-list-menu "treelined" nil t)
(defun treelined-list-menu ()
  "Show the commands of the list of sessions; in a small frame, only their keys."
  (interactive)
  (treelined-menu--show #'treelined-menu-list-wide treelined-menu--list))

(provide 'treelined-menu)
;;; treelined-menu.el ends here
