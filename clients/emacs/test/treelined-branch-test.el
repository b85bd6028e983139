;;; treelined-branch-test.el --- Names and archive of branches  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

(defun treelined-branch-test--below ()
  "Return the text below the rows of this tree, or nil."
  (when-let* ((overlay (seq-find (lambda (each) (overlay-get each 'treelined-archived))
                                 (overlays-in (point-min) (point-max)))))
    (substring-no-properties (overlay-get overlay 'after-string))))

(defun treelined-branch-test--at (text)
  "Put point on the row with TEXT, and open nothing."
  (goto-char (point-min))
  (search-forward text))

(ert-deftest treelined-branch-is-archived-counted-shown-and-brought-back ()
  (treelined-test-with-folded-tree
    (should-not (treelined-branch-test--below))
    (should-error (treelined-tree-show-archived))
    (treelined-branch-test--at "Clear the")
    (treelined-test-hears "archived; V shows it, D brings it back"
      (treelined-tree-archive))
    (treelined-test-wait (and (treelined-test-idle-p) (= 4 treelined-tree-total)))
    (should (string-match-p "  1 archived branch · .* shows it" (treelined-branch-test--below)))
    (treelined-tree-show-archived)
    (treelined-test-settle)
    (should (equal "  └─ ⊞ 2 entries · Clear the cache. (archived)"
                   (nth 2 (treelined-test-lines))))
    (should (string-match-p "hides it" (treelined-branch-test--below)))
    (treelined-branch-test--at "Clear the")
    (treelined-test-hears "the branch is back; D archives it again"
      (treelined-tree-archive))
    (treelined-test-wait (not (treelined-branch-test--below)))
    (should (= 5 treelined-tree-total))))

(ert-deftest treelined-branch-shed-branches-are-counted-with-the-way-back ()
  (treelined-test-with-folded-tree
    (let ((treelined-tree-shed-count 2))
      (treelined-tree--draw-archived)
      (should (equal "  2 shed branches · treelined unshed brings them back"
                     (treelined-branch-test--below))))
    (setq treelined-tree-archived-count 1
          treelined-tree-shed-count 1)
    (treelined-tree--draw-archived)
    (should (string-match-p
             "1 archived branch .*\n  1 shed branch · treelined unshed brings it back\\'"
             (treelined-branch-test--below)))))

(ert-deftest treelined-branch-the-leaf-leaves-a-branch-that-is-archived ()
  (treelined-test-with-folded-tree
    (treelined-test-go "a3")
    (treelined-test-hears "the leaf is at its fork; u brings both back"
      (treelined-tree-archive))
    (treelined-test-wait (and (treelined-test-idle-p)
                              (equal "a1" (treelined-session-leaf-id treelined-session))))
    (treelined-test-keys "u")
    (treelined-test-wait (equal "a3" (treelined-session-leaf-id treelined-session)))
    (treelined-test-wait (and (treelined-test-idle-p) (not (treelined-branch-test--below))))))

(ert-deftest treelined-branch-is-named-and-several-in-a-row-are-not-one ()
  (treelined-test-with-folded-tree
    (treelined-branch-test--at "Clear the")
    (treelined-test-hears "this branch is called “the cache: 100%”; an empty name removes it"
      (treelined-tree-name-branch "the cache: 100%"))
    (treelined-test-hears "this branch has no name; it was “the cache: 100%”"
      (treelined-tree-name-branch ""))
    (treelined-test-call 'set_leaf :sessionId "talk" :leafId "a1")
    (treelined-test-wait (and (treelined-test-idle-p) (= 3 treelined-tree-total)))
    (treelined-branch-test--at "2 branches")
    (should-error (treelined-tree-archive))))

;; Side questions once had no keys.
(ert-deftest treelined-branch-a-question-is-asked-beside-the-conversation-and-kept-once ()
  (treelined-test-with-folded-tree
    (let ((leaf (treelined-session-leaf-id treelined-session)))
      (treelined-test-hears "asked beside the conversation; ; brings it in"
        (treelined-tree-ask-aside "and the weather?"))
      (treelined-test-wait (string-search "and the weather?" (buffer-string)))
      (should (equal leaf (treelined-session-leaf-id treelined-session))))
    (treelined-branch-test--at "and the weather")
    (treelined-test-hears "kept; its messages are at the leaf"
      (treelined-tree-keep-aside))
    (treelined-test-wait (treelined-test-idle-p))
    (treelined-branch-test--at "and the weather")
    (treelined-test-hears "it is in the conversation already"
      (treelined-tree-keep-aside))
    (should-error (treelined-tree-ask-aside " "))))

(ert-deftest treelined-branch-the-archive-of-another-program-is-drawn-at-once ()
  (treelined-test-with-folded-tree
    (treelined-test-call 'archive_branch :sessionId "talk" :entryId "u2")
    (treelined-test-wait (treelined-branch-test--below))
    (treelined-test-settle)
    (treelined-test-call 'unarchive_branch :sessionId "talk" :entryId "u2")
    (treelined-test-wait (not (treelined-branch-test--below)))))

;; An open branch once did not show its name.
(ert-deftest treelined-branch-an-open-branch-says-its-name ()
  (treelined-test-with-folded-tree
    (treelined-branch-test--at "Clear the")
    (treelined-test-hears "this branch is called “the cache”"
      (treelined-tree-name-branch "the cache"))
    (treelined-test-wait (string-search "⊞ 2 entries · the cache" (buffer-string)))
    (treelined-tree-unfold-all)
    (treelined-test-wait (string-search "user       the cache · Clear the cache." (buffer-string)))))

(defun treelined-branch-test--large ()
  "Make the session \"large\" of 5,000 entries.
27 times a branch is left, and the next one begins beside it."
  (treelined-test-call 'create_session :sessionId "large" :cwd "/tmp" :write "now")
  (let ((fork nil) (count 0) entries)
    (dotimes (round 29)
      (let ((above fork))
        (dotimes (_ (if (< 0 round 28) 2 1))
          (setq above fork)
          (dotimes (_ (if (< round 28) 90 (- 5000 count)))
            (let ((id (format "e%d" count)))
              (push (append (list :type "message" :id id
                                  :message (list :role "user" :content (format "says %s" id)))
                            (and above (list :parentId above)))
                    entries)
              (setq above id
                    count (1+ count)))))
        (setq fork above)))
    (treelined-test-call 'append_entries :sessionId "large" :entries (vconcat (nreverse entries)))))

(defun treelined-branch-test--guides ()
  "Return the width of the widest guides of the rows that were fetched."
  (let ((widest 0))
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (when-let* ((node (treelined-tree-node)))
          (let ((line (buffer-substring (line-beginning-position) (line-end-position))))
            (should (string-prefix-p (plist-get node :prefix) (substring line 2)))
            (setq widest (max widest (string-width (plist-get node :prefix))))))
        (forward-line)))
    widest))

;; Guides once took 40 of 110 columns.
(ert-deftest treelined-branch-a-tree-of-5000-entries-has-at-most-12-columns-of-guides ()
  (treelined-test-with
    (treelined-branch-test--large)
    (treelined-test-open "large")
    (should (<= (treelined-tree--guide-columns) (/ 80 6)))
    (treelined-test-go "e4860")
    (should (string-search "⊞ 90 entries · says e4770" (buffer-string)))
    (should (= 3 (treelined-branch-test--guides)))
    (treelined-tree-unfold-all)
    (treelined-test-wait (= 5000 treelined-tree-total))
    (treelined-test-go "e4999")
    (should (= 12 (treelined-branch-test--guides)))))

(provide 'treelined-branch-test)
;;; treelined-branch-test.el ends here
