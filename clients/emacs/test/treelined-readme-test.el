;;; treelined-readme-test.el --- The README is right  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

(defun treelined-readme-test--text ()
  "Return the text of the README."
  (with-temp-buffer
    (insert-file-contents (expand-file-name "README.md" treelined-test-folder))
    (buffer-string)))

(defun treelined-readme-test--all (regexp)
  "Return the first group of all matches of REGEXP in the README."
  (let ((text (treelined-readme-test--text))
        (start 0)
        all)
    (while (string-match regexp text start)
      (push (match-string 1 text) all)
      (setq start (match-end 0)))
    (should all)
    (delete-dups all)))

(ert-deftest treelined-readme-names-only-what-exists ()
  (dolist (name (treelined-readme-test--all "[`('\" ]\\(treelined-[a-z-]+[a-z]\\)[`) ]"))
    (let ((symbol (intern name)))
      (should (or (fboundp symbol) (boundp symbol)
                  (ert-fail (list "README.md names what does not exist" name)))))))

(defun treelined-readme-test--emacs (home form)
  "Evaluate FORM with the packages of HOME in another Emacs, and return its output."
  (let ((process-environment (cons (concat "HOME=" home) process-environment)))
    (with-temp-buffer
      (should (eql 0 (call-process (expand-file-name invocation-name invocation-directory)
                                   nil t nil "-Q" "--batch" "--eval"
                                   (prin1-to-string `(progn
                                                       (require 'package)
                                                       (package-initialize)
                                                       ,form)))))
      (buffer-string))))

(ert-deftest treelined-readme-the-package-is-installed-by-the-first-line ()
  (let ((home (make-temp-file "treelined-home" t)))
    (unwind-protect
        (progn
          (should-not (string-match-p
                       "Warning"
                       (treelined-readme-test--emacs
                        home `(package-install-file
                               ,(directory-file-name treelined-test-folder)))))
          ;; The first command loads the package.
          (should (string-match-p
                   "(t nil t)"
                   (treelined-readme-test--emacs
                    home '(print (list (autoloadp (symbol-function 'treelined))
                                       (featurep 'treelined-menu)
                                       (progn
                                         (treelined-log)
                                         (eq (lookup-key treelined-tree-mode-map "u")
                                             'treelined-tree-undo))))))))
      (delete-directory home t))))

(ert-deftest treelined-readme-lists-all-options ()
  (let (options)
    (mapatoms (lambda (symbol)
                (when (and (custom-variable-p symbol)
                           (string-prefix-p "treelined-" (symbol-name symbol))
                           (not (string-suffix-p "-mode" (symbol-name symbol)))
                           (not (string-suffix-p "-hook" (symbol-name symbol))))
                  (push (symbol-name symbol) options))))
    (should (> (length options) 10))
    (dolist (option options)
      (should (string-search (format "`%s`" option) (treelined-readme-test--text))))))

(ert-deftest treelined-readme-shows-the-menu-as-it-is ()
  (dolist (suffix (treelined-readme-test--suffixes 'treelined-menu-tree-wide))
    (should (string-match-p (regexp-quote (format " %s %s" (car suffix) (cadr suffix)))
                            (treelined-readme-test--text)))))

(defun treelined-readme-test--suffixes (prefix)
  "Return the key, the description and the command of all suffixes of PREFIX."
  (let (all)
    (cl-labels ((walk (layout)
                  (cond ((vectorp layout) (mapc #'walk (append layout nil)))
                        ((and (listp layout) (plist-member (cl-find-if #'listp layout) :command))
                         (let ((plist (cl-find-if #'listp layout)))
                           (push (list (plist-get plist :key) (plist-get plist :description)
                                       (plist-get plist :command))
                                 all)))
                        ((consp layout) (mapc #'walk layout)))))
      (walk (get prefix 'transient--layout)))
    (should (> (length all) 10))
    all))

(ert-deftest treelined-readme-keys-of-the-menus-are-those-of-the-buffers ()
  (pcase-dolist (`(,prefix ,map) `((treelined-menu-tree-wide ,treelined-tree-mode-map)
                                   (treelined-menu-list-wide ,treelined-list-mode-map)))
    (pcase-dolist (`(,key ,_description ,command) (treelined-readme-test--suffixes prefix))
      (should (commandp command))
      (should (eq command (lookup-key map (kbd key)))))))

;; Each client once had different keys for the same action.
(defconst treelined-readme-test--actions
  '(("up" . previous-line) ("down" . next-line) ("accept" . treelined-tree-navigate)
    ("toggle-fold" . treelined-tree-toggle-fold) ("open-all" . treelined-tree-unfold-all)
    ("previous-prompt" . treelined-tree-previous-prompt)
    ("next-prompt" . treelined-tree-next-prompt) ("to-active" . treelined-tree-leaf)
    ("to-news" . treelined-tree-join) ("search" . treelined-tree-search)
    ("next-hit" . treelined-tree-next-match) ("previous-hit" . treelined-tree-previous-match)
    ("undo" . treelined-tree-undo) ("redo" . treelined-tree-redo)
    ("label" . treelined-tree-label) ("compose" . treelined-compose)
    ("mark" . treelined-tree-mark) ("compare" . treelined-tree-compare)
    ("fork" . treelined-tree-fork) ("name-branch" . treelined-tree-name-branch)
    ("archive" . treelined-tree-archive) ("show-archived" . treelined-tree-show-archived)
    ("candidates" . treelined-tree-candidates) ("family" . treelined-family)
    ("aside" . treelined-tree-ask-aside) ("keep-aside" . treelined-tree-keep-aside)
    ("tags" . treelined-tag-session) ("pin" . treelined-pin-session)
    ("continue-elsewhere" . treelined-tree-continue) ("compact" . treelined-tree-compact)
    ("export" . treelined-export) ("sessions" . treelined) ("search-all" . treelined-search)
    ("command" . treelined-run-command) ("answer" . treelined-answer)
    ("reconnect" . revert-buffer) ("help" . treelined-tree-menu) ("quit" . quit-window))
  "The commands of the actions that the table of all clients names.")

(ert-deftest treelined-readme-keys-are-those-of-the-table-that-all-clients-share ()
  ;; The mode sets the parent of the map.
  (with-temp-buffer
    (treelined-tree-mode))
  (with-temp-buffer
    (insert-file-contents (expand-file-name "../../schema/keys.tsv" treelined-test-folder))
    (let ((rows (seq-remove (lambda (line) (string-prefix-p "#" line))
                            (split-string (buffer-string) "\n" t))))
      (should (> (length rows) 30))
      (dolist (row rows)
        (let* ((cells (split-string row "\t"))
               (name (car cells))
               (keys (remove "-" (split-string (nth 5 cells) " ")))
               (command (cdr (assoc name treelined-readme-test--actions))))
          (if (string-suffix-p "!" name)
              (dolist (key keys)
                (should (memq (lookup-key treelined-tree-mode-map (kbd key))
                              (list nil (cdr (assoc (string-remove-suffix "!" name)
                                                    treelined-readme-test--actions))))))
            (should (eq (null keys) (null command)))
            (dolist (key keys)
              (should (equal (list key command)
                             (list key (lookup-key treelined-tree-mode-map (kbd key))))))))))))

;; `,' and `;' were in no menu.
(ert-deftest treelined-readme-the-menu-has-the-keys-of-the-table ()
  (let ((commands (mapcar #'caddr (treelined-readme-test--suffixes 'treelined-menu-tree-wide))))
    (pcase-dolist (`(,action . ,command) treelined-readme-test--actions)
      (unless (member action '("up" "down" "help" "quit"))
        (should (or (memq command commands) (ert-fail (list "not in the menu" action))))))))

(ert-deftest treelined-readme-shows-the-tree-as-it-is-drawn ()
  (treelined-test-with
    (setq treelined-arguments '("--summarizer" "outline"))
    (let ((say (lambda (id role &rest blocks)
                 (treelined-test-call 'append_message :sessionId "tour" :entryId id
                                      :message (list :role role :content (vconcat blocks))))))
      (treelined-test-call 'create_session :sessionId "tour" :cwd "/tmp" :name "A tour"
                           :write "now")
      (funcall say "u1" "user" '(:type "text" :text "Why does the build fail?"))
      (funcall say "a1" "assistant" '(:type "text" :text "A stale cache, or a missing import."))
      (funcall say "u2" "user" '(:type "text" :text "Clear the cache."))
      (funcall say "c1" "assistant" '(:type "text" :text "I clean it.")
               '(:type "toolCall" :id "t1" :name "bash" :arguments (:command "make clean all")))
      (treelined-test-call 'append_message :sessionId "tour" :entryId "r1"
                           :message '(:role "toolResult" :toolCallId "t1" :toolName "bash"
                                      :isError t
                                      :content [(:type "text" :text "make: *** [all] Error 1")]))
      (funcall say "a2" "assistant"
               '(:type "text"
                 :text "Cleared. It still fails: the linker does not find `libfoo`."))
      (treelined-test-call 'navigate_tree :sessionId "tour" :targetId "a1" :summarize t
                           :label "not the cache")
      (funcall say "u3" "user" '(:type "text" :text "Add the import."))
      (funcall say "a3" "assistant"
               '(:type "text"
                 :text "Added `import foo`. The build passes, and all 213 tests too.")))
    (treelined-test-open "tour")
    (let ((screen (mapcar (lambda (line)
                            (if (> (length line) 80) (concat (substring line 0 79) "$") line))
                          (cons (treelined-tree--header) (treelined-test-lines)))))
      (should (string-search (concat "```\n" (substring-no-properties (string-join screen "\n"))
                                     "\n```")
                             (treelined-readme-test--text))))))

(provide 'treelined-readme-test)
;;; treelined-readme-test.el ends here
