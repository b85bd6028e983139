;;; run-lint.el --- Fails if package-lint finds anything  -*- lexical-binding: t; -*-

;;; Code:

(defconst run-lint-accepted
  '("Package should have a Homepage or URL header."
    ;; Older versions of package-lint do not know Emacs 28.
    "This makes the package uninstallable in all released Emacs versions.")
  "Findings that are known: the project has no address of its own.")

(if (not (require 'package-lint nil t))
    (message "package-lint is not installed; skipped")
  (setq package-lint-main-file "treelined.el")
  (let (found)
    (dolist (file command-line-args-left)
      (with-current-buffer (find-file-noselect file)
        (pcase-dolist (`(,line ,_column ,type ,text) (package-lint-buffer))
          (unless (member text run-lint-accepted)
            (push (format "%s:%d: %s: %s" file line type text) found)))))
    (setq command-line-args-left nil)
    (when found
      (dolist (finding (nreverse found))
        (message "%s" finding))
      (kill-emacs 1))))

;;; run-lint.el ends here
