;;; run-checkdoc.el --- Fails if checkdoc finds anything  -*- lexical-binding: t; -*-

;;; Code:

(require 'checkdoc)
(require 'subr-x)

(let (found)
  (setq checkdoc-create-error-function
        (lambda (text start _end &optional _unfixable)
          (push (format "%s:%d: %s" (file-name-nondirectory (buffer-file-name))
                        (line-number-at-pos start) text)
                found)
          nil))
  (dolist (file command-line-args-left)
    (with-current-buffer (find-file-noselect file)
      (checkdoc-current-buffer t)))
  (setq command-line-args-left nil)
  (when found
    (message "%s" (string-join (nreverse found) "\n"))
    (kill-emacs 1)))

;;; run-checkdoc.el ends here
