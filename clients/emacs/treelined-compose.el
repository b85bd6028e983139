;;; treelined-compose.el --- Writing messages  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The text of a user message before which the leaf has moved is a draft.
;; `treelined-draft-function' takes drafts.  By default it puts them into a buffer of the
;; session, which C-c C-c sends.

;;; Code:

(require 'treelined-session)

(defcustom treelined-draft-function #'treelined-compose-draft
  "A function that takes a draft and a plist.
The draft is a text: that of the message to which a move has gone back, or
one that a command offers.  The plist has `:session', the
`treelined-session', and `:images', a vector of image blocks, or nil."
  :group 'treelined
  :type '(choice (const :tag "A buffer that sends it to the session" treelined-compose-draft)
                 (const :tag "The kill ring" treelined-draft-to-kill-ring)
                 function))

(defvar-local treelined-compose--images nil "Images that are sent with the message.")
(defvar-local treelined-compose--attempt nil
  "A list of the content, ANYWAY and params of a send without an answer.")

(defconst treelined-compose--lost '("disconnected" "timeout" "unreadable" "durabilityUnknown")
  "Errors after which the message may be in the session.")

(defvar-local treelined-compose--sending nil "Whether the message is being sent.")

(defvar treelined-compose-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'treelined-compose-send)
    (define-key map (kbd "C-c C-k") #'treelined-compose-quit)
    map)
  "The keys of `treelined-compose-mode'.")

(define-derived-mode treelined-compose-mode text-mode "Treelined-Compose"
  "A message to a session.
\\<treelined-compose-mode-map>\\[treelined-compose-send] sends it, \
\\[treelined-compose-quit] leaves the buffer.

\\{treelined-compose-mode-map}"
  :group 'treelined
  (visual-line-mode 1)
  (setq-local header-line-format '(:eval (treelined-compose--header))))

(defun treelined-compose--header ()
  "Return the header line."
  (let ((images (length treelined-compose--images)))
    (treelined-header
     (concat (treelined-session-title treelined-session) " · "
             (and (> images 0)
                  (format (ngettext "%d image · " "%d images · " images) images))
             (if treelined-compose--sending
                 "sending…"
               (substitute-command-keys
                "\\<treelined-compose-mode-map>\\[treelined-compose-send] sends, \
\\[treelined-compose-quit] leaves"))))))

(defun treelined-compose--buffer (session)
  "Return the buffer for messages to SESSION."
  (or (car (treelined-session-buffers session 'treelined-compose-mode))
      (with-current-buffer (generate-new-buffer
                            (format "*treelined message: %s*" (treelined-session-title session)))
        (treelined-compose-mode)
        (setq treelined-session session)
        (current-buffer))))

(defun treelined-compose (&optional session)
  "Write a message to SESSION, that of the current buffer if left out."
  (interactive)
  (pop-to-buffer (treelined-compose--buffer (or session (treelined-session-here)))
                 '((display-buffer-reuse-window display-buffer-at-bottom) (window-height . 8)))
  (goto-char (point-max)))

(defun treelined-compose-draft (text context)
  "Put TEXT into the buffer for messages to the session of CONTEXT.
\\<global-map>\\[undo] restores the text that was there.  Without a session,
TEXT is put into the kill ring."
  (if (not (or (plist-get context :session) treelined-session))
      (treelined-draft-to-kill-ring text context)
    (treelined-compose (plist-get context :session))
    (let ((before (buffer-string)))
      (undo-boundary)
      (erase-buffer)
      (insert text)
      (undo-boundary)
      (setq treelined-compose--images (plist-get context :images))
      (unless (member before (list "" text))
        (message "treelined: undo restores the previous text")))))

(defun treelined-draft-to-kill-ring (text _context)
  "Put TEXT at the front of the kill ring."
  (kill-new text)
  (message "treelined: the message is in the kill ring"))

(defun treelined-compose--content ()
  "Return the content of the message."
  (let ((text (buffer-substring-no-properties (point-min) (point-max))))
    (if (seq-empty-p treelined-compose--images)
        text
      (vconcat (list (list :type "text" :text text)) treelined-compose--images))))

(defun treelined-compose--params (content anyway)
  "Return the params to send CONTENT; if ANYWAY, the leaf is not compared.
After a lost answer the same content gets the same params, so that the
daemon recognizes a retry.  The leaf may be the message itself by then."
  (unless (equal (seq-take treelined-compose--attempt 2) (list content anyway))
    (setq treelined-compose--attempt
          (list content anyway
                (append (list :entryId (format "%08x%08x" (random (ash 1 32))
                                               (random (ash 1 32)))
                              :message (list :role "user" :content content
                                             :timestamp (floor (* 1000 (float-time)))))
                        (unless anyway
                          (list :expectedLeafId
                                (treelined-session-leaf-id treelined-session)))))))
  (nth 2 treelined-compose--attempt))

(defun treelined-compose--sent (tick)
  "Clear the buffer, unless it was edited after the modification TICK."
  (setq treelined-compose--attempt nil
        treelined-compose--sending nil)
  (when (eql tick (buffer-chars-modified-tick))
    (erase-buffer)
    (setq treelined-compose--images nil))
  (message "treelined: sent"))

(defun treelined-compose--refused (error)
  "Report that the message was not sent because of ERROR, and keep it."
  (setq treelined-compose--sending nil)
  (unless (member (plist-get error :kind) treelined-compose--lost)
    (setq treelined-compose--attempt nil))
  (if (equal (plist-get error :kind) "leafMoved")
      (message "treelined: not sent: others have written here.  o in the tree goes to \
their leaf; C-u C-c C-c sends it here, as a branch")
    (message "treelined: not sent: %s" (treelined-error-text error))))

(defun treelined-compose-send (&optional anyway)
  "Send the buffer as a message of the user.
It is kept until the daemon has it.  With a prefix argument ANYWAY, send
it even if others have written here, which makes a branch."
  (interactive "P" treelined-compose-mode)
  (when treelined-compose--sending
    (user-error "The message is being sent"))
  (let ((content (treelined-compose--content))
        (tick (buffer-chars-modified-tick)))
    (when (and (stringp content) (string-blank-p content))
      (user-error "There is nothing to send"))
    (setq treelined-compose--sending t)
    (treelined-session-request treelined-session 'append_message
                               (treelined-compose--params content (and anyway t))
                               (lambda (_) (treelined-compose--sent tick))
                               #'treelined-compose--refused)))

(defun treelined-compose-quit ()
  "Leave the buffer.  Its text stays for the next time."
  (interactive nil treelined-compose-mode)
  (quit-window))

(provide 'treelined-compose)
;;; treelined-compose.el ends here
